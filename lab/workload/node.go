package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// node is a value in the file. A node with n == nil is a key that is not there; reading it gives the
// zero value without a fault.
type node struct {
	doc  *document
	n    ast.Node
	path string
	line int
	used map[string]bool // keys of a mapping that have been asked for, in all forms
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
