//go:build race

package calibrate

// underRace says that the race detector is on, which makes a package without goroutines slow for nothing.
const underRace = true
