package workload

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
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

// node is a value in the file. A node with n == nil is a key that is not there; reading it gives the
// zero value without a fault.
type node struct {
	doc  *document
	n    ast.Node
	path string
	line int
	used map[string]bool // keys of a mapping that have been asked for, in all forms
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

func line(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// fail notes a fault at the node; the first one of a node is told, as others may follow from it.
func (v *node) fail(format string, args ...any) {
	for _, f := range v.doc.faults {
		if f.Field == v.path && f.Line == v.line {
			return
		}
	}
	v.doc.faults = append(v.doc.faults, &Fault{File: v.doc.file, Line: v.line, Field: v.path, Reason: fmt.Sprintf(format, args...)})
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

// there reports whether the key is in the file.
func (v *node) there() bool { return v.n != nil }

// pairs are the keys and values of a mapping.
func (v *node) pairs() []*ast.MappingValueNode {
	switch m := v.n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// mapping makes sure that the node is a mapping.
func (v *node) mapping() bool {
	if v.n == nil {
		return false
	}
	if v.used == nil {
		v.used = map[string]bool{}
	}
	switch v.n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	v.fail("%s where a mapping (key: value) is wanted", v.show())
	return false
}

// key is the value of a key; call it for every key that may be there, then call [node.end].
func (v *node) key(name string) *node {
	if v.used != nil {
		v.used[name] = true
	}
	child := &node{doc: v.doc, path: name, line: v.line}
	if v.path != "" {
		child.path = v.path + "." + name
	}
	for _, p := range v.pairs() {
		if keyName(p) == name {
			child.n, child.line = p.Value, line(p.Key)
			if p.Value == nil || p.Value.Type() == ast.NullType {
				child.n = nil
				child.fail("has no value")
			}
		}
	}
	return child
}

// need is key for one that must be there.
func (v *node) need(name string) *node {
	child := v.key(name)
	if !child.there() && v.there() && !v.has(name) {
		child.fail("missing")
	}
	return child
}

func (v *node) has(name string) bool {
	return slices.ContainsFunc(v.pairs(), func(p *ast.MappingValueNode) bool { return keyName(p) == name })
}

func keyName(p *ast.MappingValueNode) string {
	if p.Key.GetToken() == nil {
		return ""
	}
	return p.Key.GetToken().Value
}

// end faults every key that nobody asked for.
func (v *node) end() {
	for _, p := range v.pairs() {
		name := keyName(p)
		if v.used[name] {
			continue
		}
		names := make([]string, 0, len(v.used))
		for n := range v.used {
			names = append(names, n)
		}
		slices.Sort(names)
		bad := &node{doc: v.doc, path: name, line: line(p.Key)}
		if v.path != "" {
			bad.path = v.path + "." + name
		}
		bad.fail("no such key; %s", suggest(name, names))
	}
}

// list are the elements of a sequence.
func (v *node) list() []*node {
	if v.n == nil {
		return nil
	}
	s, ok := v.n.(*ast.SequenceNode)
	if !ok {
		v.fail("%s where a list is wanted", v.show())
		return nil
	}
	out := make([]*node, len(s.Values))
	for i, e := range s.Values {
		out[i] = &node{doc: v.doc, n: e, path: fmt.Sprintf("%s[%d]", v.path, i), line: line(e)}
	}
	return out
}

// show is the value as written, shortened, for messages.
func (v *node) show() string {
	switch v.n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	s := []rune(v.n.String())
	if len(s) > 40 {
		s = append(s[:40], '…')
	}
	return strconv.Quote(string(s))
}

// text is a string, or a block of text.
func (v *node) text() string {
	switch n := v.n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return n.String()
	}
	v.fail("%s where text is wanted", v.show())
	return ""
}

// number is a finite number within [lo, hi].
func (v *node) number(lo, hi float64) float64 {
	if v.n == nil {
		return 0
	}
	x, err := math.NaN(), error(nil)
	switch n := v.n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		x, err = strconv.ParseFloat(strings.ReplaceAll(n.GetToken().Value, "_", ""), 64)
	}
	switch {
	case err != nil || math.IsNaN(x):
		v.fail("%s where a number is wanted", v.show())
		return 0
	case x < lo || x > hi:
		v.fail("%v is not within %v and %v", x, lo, hi)
		return 0
	}
	return x
}

// count is a whole number within [lo, hi].
func (v *node) count(lo, hi int) int {
	x := v.number(float64(lo), float64(hi))
	if x != math.Trunc(x) {
		v.fail("%v is not a whole number", x)
		return 0
	}
	return int(x)
}

// duration is a time with its unit, from 0 to 1000 h.
func (v *node) duration() time.Duration {
	const most = 1000 * time.Hour
	if v.n == nil {
		return 0
	}
	s, ok := v.n.(*ast.StringNode)
	if !ok {
		if _, number := v.n.(*ast.IntegerNode); number {
			v.fail("%s has no unit; write %ss or %sms", v.show(), v.n.String(), v.n.String())
		} else {
			v.fail("%s where a time is wanted, as 30s", v.show())
		}
		return 0
	}
	d, err := time.ParseDuration(s.Value)
	switch {
	case err != nil:
		v.fail("%q is not a time; write it as 250ms, 30s or 5m", s.Value)
	case d < 0 || d > most:
		v.fail("%s is not within 0s and %s", s.Value, most)
	default:
		return d
	}
	return 0
}

// choice is one of the given words; a missing one is "".
func (v *node) choice(words ...string) string {
	s := v.text()
	if v.n != nil && !slices.Contains(words, s) {
		v.fail("%q unknown; %s", s, suggest(s, words))
		return ""
	}
	return s
}

// only is the one key of a mapping like {poisson: ...}, which says what its value is.
func (v *node) only(words ...string) (string, *node) {
	if !v.mapping() {
		return "", nil
	}
	pairs := v.pairs()
	if len(pairs) != 1 {
		v.fail("has %d keys; want one of %s", len(pairs), strings.Join(words, ", "))
		return "", nil
	}
	for _, w := range words {
		v.used[w] = true
	}
	v.end()
	name := keyName(pairs[0])
	if !slices.Contains(words, name) {
		return "", nil
	}
	return name, v.key(name)
}

// flag is true or false; a missing one is false.
func (v *node) flag() bool {
	if v.n == nil {
		return false
	}
	b, ok := v.n.(*ast.BoolNode)
	if !ok {
		v.fail("%s where true or false is wanted", v.show())
		return false
	}
	return b.Value
}

// rising is a list of numbers within [lo, hi] that never fall.
func (v *node) rising(lo, hi float64) []float64 {
	var out []float64
	for _, e := range v.list() {
		x := e.number(lo, hi)
		if len(out) > 0 && x < out[len(out)-1] {
			e.fail("%v is below the one before", x)
		}
		out = append(out, x)
	}
	return out
}
