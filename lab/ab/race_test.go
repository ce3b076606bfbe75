//go:build race

package ab

const raced = true
