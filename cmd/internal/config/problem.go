package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one fault of a configuration file, or one thing worth a warning.
type Problem struct {
	File string
	Line int    // from 1; 0: the file as a whole
	Key  string // dotted; empty: the file as a whole
	What string // what is wrong, with the value, and why
	Do   string // what to do about it; may be empty
}

// String renders the problem as `file:line: key: what; what to do`.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.What)
	if p.Do != "" {
		b.WriteString("; " + p.Do)
	}
	return b.String()
}

// Problems are all faults of a configuration, in order of their lines. It is never empty when it is
// returned as an error.
type Problems []Problem

// Error renders one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
}

// Nearest returns the name closest to a mistyped one, or "" when none is close enough to be meant.
func Nearest(name string, among []string) string {
	best, dist := "", 1+max(1, len(name)/3)
	for _, s := range among {
		if d := distance(strings.ToLower(name), s); d < dist {
			best, dist = s, d
		}
	}
	return best
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that turn a
// into b (optimal string alignment), in bytes.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, before
	}
	return rows[1][len(b)]
}

var _ error = Problems(nil)
