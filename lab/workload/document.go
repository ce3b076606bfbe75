package workload

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/parser"
)

// document is a YAML file being read. It collects all faults instead of stopping at the first.
type document struct {
	file   string
	faults []*Fault
}

// Fault is one thing wrong with a scenario file.
type Fault struct {
	File   string
	Line   int    // 0: the file as a whole
	Field  string // path of the key, as traffic[0].prompt; empty: none
	Reason string // what is wrong and what to do
	Cause  error  // of a file that cannot be read; nil: none
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Error formats as "file:line: field: reason".
func (f *Fault) Error() string {
	where := f.File
	if f.Line > 0 {
		where += ":" + strconv.Itoa(f.Line)
	}
	if f.Field != "" {
		where += ": " + f.Field
	}
	return where + ": " + f.Reason
}

// plausible refuses what no scenario looks like before the YAML parser sees it, whose time grows with
// the square of nesting, and worse.
func (d *document) plausible(data []byte) error {
	const longest, deepest, marks = 1000, 16, 200
	if len(data) > maxFile {
		return &Fault{File: d.file, Reason: "longer than 64 KiB; is it a scenario?"}
	}
	depth, marked := 0, 0
	for i, text := range bytes.Split(data, []byte("\n")) {
		for _, b := range text {
			switch b {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			case '&', '*', '!', '?':
				marked++
			case 0:
				return &Fault{File: d.file, Line: i + 1, Reason: "holds a NUL byte; is it a text file in UTF-8?"}
			}
			if depth > deepest || marked > marks {
				return &Fault{File: d.file, Line: i + 1, Reason: "nested too deep, or full of anchors and tags; is it a scenario?"}
			}
		}
		if len(text) > longest {
			return &Fault{File: d.file, Line: i + 1, Reason: fmt.Sprintf("longer than %d bytes; break the line", longest)}
		}
	}
	if !utf8.Valid(data) {
		return &Fault{File: d.file, Reason: "not UTF-8"}
	}
	return nil
}

// parseYAML returns the root of a file that holds one mapping.
func (d *document) parseYAML(data []byte) (*node, error) {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, d.syntax(err)
	}
	root := &node{doc: d, line: 1}
	for _, doc := range f.Docs {
		switch {
		case doc.Body == nil:
		case root.n != nil:
			return nil, &Fault{File: d.file, Line: line(doc.Body), Reason: "more than one YAML document; give one file for each"}
		default:
			root.n, root.line = doc.Body, line(doc.Body)
		}
	}
	if root.n == nil {
		return nil, &Fault{File: d.file, Reason: "empty file"}
	}
	return root, nil
}

// syntax shortens the parser's message to its position and first line.
func (d *document) syntax(err error) error {
	at, text := 0, strings.SplitN(strings.TrimSpace(err.Error()), "\n", 2)[0]
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if pos, msg, ok := strings.Cut(rest, "] "); ok {
			l, _, _ := strings.Cut(pos, ":")
			if n, err := strconv.Atoi(l); err == nil {
				at, text = n, msg
			}
		}
	}
	return &Fault{File: d.file, Line: at, Reason: "not YAML: " + text}
}

// faulty joins the faults, by line; nil: none.
func (d *document) faulty() error {
	slices.SortStableFunc(d.faults, func(a, b *Fault) int { return a.Line - b.Line })
	errs := make([]error, len(d.faults))
	for i, f := range d.faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}
