//go:build race

package datasets

// raced says that the race detector is on, under which the large files take minutes.
const raced = true
