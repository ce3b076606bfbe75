//go:build !race

package trace

// raced: the race detector is on, which makes the store ten times slower.
const raced = false
