//go:build race

package prefix

// slow is how many times less the long tests do, as the race detector costs ten times.
const slow = 10
