// Package spell finds what a mistyped name was meant to be.
package spell

// Nearest returns the known name that takes the fewest edits to reach, the first among equals.
func Nearest(name string, known []string) string {
	if len(name) > 64 {
		name = name[:64] // untrusted, and no known name is longer
	}
	best, fewest := "", -1
	for _, k := range known {
		if d := edits(name, k); fewest < 0 || d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// Close reports whether a name is so few edits away from a known one that it was probably meant.
func Close(name, known string) bool {
	return len(name) <= 64 && edits(name, known) <= max(1, len(name)/3)
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
