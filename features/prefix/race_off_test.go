//go:build !race

package prefix

// slow is how many times less the long tests do.
const slow = 1
