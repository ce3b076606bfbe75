//go:build !race

package ab

const raced = false
