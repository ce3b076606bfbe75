package workload

import (
	"strings"

	"github.com/presage-router/presage/internal/spell"
)

// suggest names the word nearest to a mistyped one, and all there are if they are few.
func suggest(bad string, words []string) string {
	s := "did you mean " + spell.Nearest(strings.ToLower(bad), words) + "?"
	if len(words) <= 16 {
		s += " there are " + strings.Join(words, ", ")
	}
	return s
}
