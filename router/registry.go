package router

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Params are what a policy may be given when it is made. The zero value means published defaults.
type Params struct {
	Seed        uint64  // of a policy's own choices, as where a rotation starts; draws use Query.Rand
	Fallbacks   int     // further endpoints named in a decision
	PeakPrefill float64 // prefill throughput of one endpoint, tokens per second; 0: as published
	BlockSize   int     // tokens per KV block, for formulas in blocks; 0: 16
}

// Recipe is one policy that can be chosen by name.
type Recipe struct {
	About string                       // one line, for people
	New   func(Params) (Policy, error) // a fresh policy, for one router
}

// Registry holds policies by name.
type Registry map[string]Recipe

// Names returns the names, sorted.
func (r Registry) Names() []string { return sorted(r) }

// New makes the policy of that name; an unknown name gets the nearest known one in the error.
func (r Registry) New(name string, p Params) (Policy, error) {
	recipe, ok := r[name]
	if !ok {
		return nil, fmt.Errorf("%q unknown; nearest %s, all: presage policies", name, Nearest(name, r.Names()))
	}
	return recipe.New(p)
}

// unknown is the end of an error about a name that is not in the list.
func unknown(name string, known []string) string {
	return fmt.Sprintf("%q unknown; nearest %s, all: %s", name, Nearest(name, known), strings.Join(known, ", "))
}

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

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
