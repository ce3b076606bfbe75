package gbdt

import "fmt"

// resolve maps the feature names of a file to their places in fields.
func resolve(names, fields []string) ([]int, error) {
	at := make(map[string]int, len(fields))
	for i, f := range fields {
		at[f] = i
	}
	out := make([]int, len(names))
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		j, ok := at[name]
		switch {
		case !ok && len(fields) == 0:
			return nil, fmt.Errorf("feature %d: %q: no features are known", i, clip(name))
		case !ok:
			return nil, fmt.Errorf("feature %d: %q: unknown name; did you mean %q?", i, clip(name), nearest(name, fields))
		case seen[name]:
			return nil, fmt.Errorf("feature %d: %q: named twice", i, name)
		}
		seen[name] = true
		out[i] = j
	}
	return out, nil
}

// clip shortens a word of a file for a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// nearest returns the word with the fewest edits to s, the first of equals.
func nearest(s string, words []string) string {
	s = clip(s)
	best, fewest := "", 1<<30
	for _, w := range words {
		if d := edits(s, clip(w)); d < fewest {
			best, fewest = w, d
		}
	}
	return best
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
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal = row[j+1]
			row[j+1] = d
		}
	}
	return row[len(b)]
}
