package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/presage-router/presage/internal/spell"
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

// meant returns the known name that a mistyped one was probably meant to be, or "".
func meant(name string, among []string) string {
	name = strings.ToLower(name)
	if near := spell.Nearest(name, among); spell.Close(name, near) {
		return near
	}
	return ""
}

var _ error = Problems(nil)
