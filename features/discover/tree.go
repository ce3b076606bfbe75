package discover

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

// Bounds of a file, for the YAML parser's time grows with the square of nesting.
const (
	maxFile    = 1 << 20
	maxNesting = 16
	maxIndent  = 64 // columns before the first character of a line
)

type form uint8

const (
	nothing form = iota
	text
	number
	boolean
	mapping
	list
)

func (f form) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a mapping", "a list"}[f]
}

// node is a YAML value with its line.
type node struct {
	form    form
	line    int
	value   string  // of a scalar, as written
	entries []entry // of a mapping
	items   []node  // of a list
}

type entry struct {
	key   string
	line  int
	value node
}

// tree reads a file's one document. Anchors, tags and other documents are faults: what a file says
// must be where the reader looks.
func tree(data []byte, faults *faults) (root node, ok bool) {
	if len(data) > maxFile {
		faults.add(0, "", fmt.Sprintf("larger than %d KiB", maxFile>>10), "is this the right file?")
		return root, false
	}
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if !plain(data, faults) {
		return root, false
	}
	file, err := parse(string(data), faults)
	if file == nil && err == nil {
		return root, false
	}
	if err != nil {
		line, what := 0, "not YAML"
		var at yaml.Error
		if errors.As(err, &at) {
			what += ": " + at.GetMessage()
			if tk := at.GetToken(); tk != nil && tk.Position != nil {
				line = tk.Position.Line
			}
		}
		faults.add(line, "", what, "check indentation, colons, brackets and quotes here")
		return root, false
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case ok:
			faults.add(lineOf(doc.Body), "", "a second document in one file", "keep one and remove the `---` line")
			return root, false
		default:
			root, ok = convert(doc.Body, faults), true
		}
	}
	return root, !faults.fatal
}

// parse runs the YAML parser; neither a file nor an error: the fault has been added. A panic of the
// parser is an error like any other, for the running service reads files that somebody is editing.
func parse(data string, faults *faults) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("parser: %v", r)
		}
	}()
	tokens := lexer.Tokenize(data)
	if !flat(tokens, faults) {
		return nil, nil
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// plain refuses what no such file holds before the parser sees it.
func plain(data []byte, faults *faults) bool {
	for i, line := range bytes.Split(data, []byte{'\n'}) {
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		var what, do string
		switch {
		case !utf8.Valid(line):
			what, do = "not UTF-8 text", "save the file as UTF-8"
		case indent < len(line) && line[indent] == '\t' && len(bytes.TrimSpace(line)) > 0:
			what, do = "a tab in the indentation", "YAML allows only spaces there"
		case bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			what, do = "a control character", "remove it"
		case indent > maxIndent && indent < len(line):
			what, do = fmt.Sprintf("indented by more than %d columns", maxIndent), "nothing here nests that deep"
		default:
			continue
		}
		faults.add(i+1, "", what, do)
		return false
	}
	return true
}

// flat refuses deep nesting within one line; the indentation bounds it over several.
func flat(tokens token.Tokens, faults *faults) bool {
	depth, marks, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			marks, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			marks++
		default:
		}
		if depth > maxNesting || marks > maxNesting {
			faults.add(line, "", fmt.Sprintf("more than %d collections within each other", maxNesting), "nothing here nests that deep")
			return false
		}
	}
	return true
}

func convert(n ast.Node, faults *faults) node {
	out := node{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.form = mapping
		out.entries = entries(n.Values, faults)
	case *ast.MappingValueNode:
		out.form = mapping
		out.entries = entries([]*ast.MappingValueNode{n}, faults)
	case *ast.SequenceNode:
		out.form = list
		for _, item := range n.Values {
			v := convert(item, faults)
			if v.line == 0 {
				v.line = out.line
			}
			out.items = append(out.items, v)
		}
	case *ast.StringNode:
		out.form, out.value = text, n.Value
	case *ast.LiteralNode:
		out.form, out.value = text, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.form, out.value = number, n.GetToken().Value
	case *ast.BoolNode:
		out.form, out.value = boolean, n.Token.Value
	case *ast.NullNode, *ast.CommentGroupNode:
	default:
		faults.fatal = true
		faults.add(out.line, "", "anchors, aliases and tags are not supported", "write the value out")
	}
	return out
}

func entries(values []*ast.MappingValueNode, faults *faults) []entry {
	out := make([]entry, 0, len(values))
	first := make(map[string]int, len(values))
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			faults.add(lineOf(v.Key), "", "a key that is no plain text", "write plain keys")
			continue
		}
		if line, dup := first[key.Value]; dup {
			faults.add(lineOf(key), show(key.Value), fmt.Sprintf("given twice, first in line %d", line), "keep one")
			continue
		}
		first[key.Value] = lineOf(key)
		e := entry{key: key.Value, line: lineOf(key), value: convert(v.Value, faults)}
		if e.value.line == 0 {
			e.value.line = e.line
		}
		out = append(out, e)
	}
	return out
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
