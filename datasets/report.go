package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report says what was read of a file. Rows = Kept + the sum of Dropped.
type Report struct {
	File      string
	Format    Format
	Rows      int            // records seen; blank lines are none
	Kept      int            // records handed out
	Dropped   map[string]int // records left out, by reason
	Reordered int            // records whose time is before that of an earlier one in the file
	First     *Error         // the first record that is faulty, not merely filtered out; nil: none
}

// String is one line for people: "trace.csv: azure, 7 rows, 2 kept; dropped: negative 3, ...".
func (r *Report) String() string {
	text := fmt.Sprintf("%s: %s, %d rows, %d kept", r.File, r.Format, r.Rows, r.Kept)
	if len(r.Dropped) > 0 {
		text += "; dropped: " + r.reasons()
	}
	if r.Reordered > 0 {
		text += fmt.Sprintf("; %d out of order", r.Reordered)
	}
	return text
}

// reasons lists why records were dropped, the most frequent reason first.
func (r *Report) reasons() string {
	names := slices.SortedFunc(maps.Keys(r.Dropped), func(a, b string) int {
		return cmp.Or(r.Dropped[b]-r.Dropped[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, r.Dropped[name])
	}
	return strings.Join(names, ", ")
}

// Error says where a file is wrong, what was found, why it cannot be used and what to do.
type Error struct {
	File   string
	Line   int    // 0: the file as a whole, or Record says where
	Record int    // number of the record in a JSON document, from 1
	Field  string // empty: the record as a whole
	Value  string // as found, shortened; empty: nothing to show
	Reason string
	Advice string // empty: none
	Cause  error  // underlying error, or nil
}

// Error formats as "file: line 3: FIELD: "value": reason; advice".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ": line %d", e.Line)
	}
	if e.Record > 0 {
		fmt.Fprintf(&b, ": record %d", e.Record)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	if e.Value != "" {
		fmt.Fprintf(&b, ": %q", e.Value)
	}
	b.WriteString(": " + e.Reason)
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Cause }
