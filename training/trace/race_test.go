//go:build race

package trace

const raced = true
