package config

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxFile bounds the size of a configuration file in bytes.
const MaxFile = 64 << 10

// maxNesting bounds collections within each other: the YAML parser's time grows with the square.
const maxNesting = 32

type form uint8

const (
	null form = iota
	text      // a string, quoted or not
	number
	boolean
	mapping
	sequence
)

func (f form) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a mapping", "a list"}[f]
}

// node is a YAML value with its line.
type node struct {
	form    form
	line    int
	value   string // of a scalar, as written, without quotes
	quoted  bool
	entries []entry // of a mapping
	items   []*node // of a sequence
}

type entry struct {
	key   string
	line  int
	value *node
}

// parse turns a file into nodes. A nil node with problems: the file cannot be read as YAML.
func parse(file string, data []byte) (*node, Problems) {
	if len(data) > MaxFile {
		return nil, Problems{{File: file, What: fmt.Sprintf("larger than %d KiB: no configuration is that long", MaxFile>>10), Do: "is this the right file?"}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if p := scan(data); p != nil {
		p.File = file
		return nil, Problems{*p}
	}
	tokens := lexer.Tokenize(string(data))
	if line := tooDeep(tokens); line > 0 {
		return nil, Problems{{File: file, Line: line, What: fmt.Sprintf("more than %d collections within each other", maxNesting), Do: "no key needs that"}}
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntax(file, err)}
	}
	t := converter{file: file}
	var root *node
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			t.fault(doc.Body, "", "a second document in one file", "keep one and remove the `---` line")
			break
		}
		root = t.convert("", doc.Body)
	}
	if root == nil {
		root = &node{form: mapping, line: 1}
	}
	return root, t.problems
}

// scan refuses what no configuration holds, line by line, before the YAML parser sees it.
func scan(data []byte) *Problem {
	for i, line := range bytes.Split(data, []byte("\n")) {
		rest := bytes.TrimLeft(line, " ")
		switch {
		case !utf8.Valid(line):
			return &Problem{Line: i + 1, What: "not UTF-8 text", Do: "save the file as UTF-8"}
		case bytes.HasPrefix(rest, []byte("\t")) && len(bytes.TrimSpace(rest)) > 0 && bytes.TrimSpace(rest)[0] != '#':
			return &Problem{Line: i + 1, What: "a tab in the indentation: YAML allows only spaces", Do: "replace it by spaces"}
		case bytes.ContainsFunc(bytes.TrimRight(line, "\r"), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return &Problem{Line: i + 1, What: "a control character", Do: "remove it"}
		}
	}
	return nil
}

// tooDeep returns the line of the first collection nested too deeply, or 0: brackets within each
// other, and list dashes one behind the other.
func tooDeep(tokens token.Tokens) int {
	depth, dashes, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			dashes, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		default:
		}
		if depth > maxNesting || dashes > maxNesting {
			return line
		}
	}
	return 0
}

func syntax(file string, err error) Problem {
	p := Problem{File: file, What: "not YAML", Do: "check indentation, colons, brackets and quotes here"}
	var at yaml.Error
	if errors.As(err, &at) {
		p.What = "not YAML: " + at.GetMessage()
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			p.Line = tk.Position.Line
		}
	}
	return p
}

// converter turns the parser's nodes into ours, refusing what makes a file hard to trust.
type converter struct {
	file     string
	problems Problems
}

func (t *converter) fault(n ast.Node, key, what, do string) {
	t.problems = append(t.problems, Problem{File: t.file, Line: lineOf(n), Key: key, What: what, Do: do})
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

func (t *converter) convert(path string, n ast.Node) *node {
	out := &node{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.form = mapping
		t.entries(path, out, n.Values)
	case *ast.MappingValueNode:
		out.form = mapping
		t.entries(path, out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.form = sequence
		for i, item := range n.Values {
			out.items = append(out.items, t.convert(fmt.Sprintf("%s[%d]", path, i), item))
		}
	case *ast.StringNode:
		out.form, out.value = text, n.Value
		out.quoted = n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType
	case *ast.LiteralNode:
		out.form, out.value, out.quoted = text, n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.form, out.value = number, n.GetToken().Value
	case *ast.BoolNode:
		out.form, out.value = boolean, n.Token.Value
	case *ast.NullNode:
	case *ast.AliasNode, *ast.AnchorNode:
		t.fault(n, path, "anchors and aliases are not supported", "write the value out")
	case *ast.TagNode:
		t.fault(n, path, "tags are not supported", "remove "+n.Start.Value)
	case *ast.CommentGroupNode:
	default:
		t.fault(n, path, "this kind of YAML value is not supported", "write plain keys and values")
	}
	return out
}

func (t *converter) entries(path string, out *node, values []*ast.MappingValueNode) {
	first := make(map[string]int, len(values))
	for _, v := range values {
		key, ok := keyText(v.Key)
		if !ok {
			t.fault(v.Key, path, "this kind of key is not supported", "write plain keys")
			continue
		}
		at := join(path, key)
		if line, dup := first[key]; dup {
			t.fault(v.Key, at, fmt.Sprintf("given twice, first on line %d", line), "keep one")
			continue
		}
		e := entry{key: key, line: lineOf(v.Key), value: t.convert(at, v.Value)}
		if e.value.line == 0 {
			e.value.line = e.line
		}
		first[key] = e.line
		out.entries = append(out.entries, e)
	}
}

func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.MergeKeyNode, *ast.InfinityNode, *ast.NanNode:
		return k.GetToken().Value, true
	default:
		return "", false
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
