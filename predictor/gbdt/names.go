package gbdt

import (
	"fmt"

	"github.com/presage-router/presage/internal/spell"
)

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
			return nil, fmt.Errorf("feature %d: %q: unknown name; did you mean %q?", i, clip(name), spell.Nearest(clip(name), fields))
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
