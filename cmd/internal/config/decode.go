package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads and checks a configuration file. The first list holds warnings. The error, when not
// nil, is a [Problems] with every fault of the file. Relative paths in the file are resolved
// against its folder. Policies are the names of the built-in ones. Nothing is dialled and no other file is opened.
func Load(path string, policies []string) (*Config, Problems, error) {
	f, err := os.Open(path)
	if err != nil {
		what, do := "cannot be read", "give an existing file"
		var pe *fs.PathError
		if errors.As(err, &pe) {
			what += ": " + pe.Err.Error()
		}
		return nil, nil, Problems{{File: path, What: what, Do: do}}
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, Problems{{File: path, What: "cannot be read: " + err.Error(), Do: "give a regular file"}}
	}
	c, warnings, err := Parse(path, data, policies)
	if err != nil {
		return nil, warnings, err
	}
	for _, p := range []*string{&c.Fleet.File, &c.TLS.Cert, &c.TLS.Key, &c.Models.Dir, &c.Trace.Dir} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return c, warnings, nil
}

// Parse is [Load] for bytes; file names them in messages and paths stay as written.
func Parse(file string, data []byte, policies []string) (*Config, Problems, error) {
	root, problems := parse(file, bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	d := decoder{file: file, policies: policies, lines: map[string]int{}, problems: problems}
	c := Default()
	if root != nil {
		d.options = c.options()
		d.mapping("", root)
		d.check(c)
	}
	d.problems.sort()
	d.warnings.sort()
	if len(d.problems) > 0 {
		return nil, d.warnings, d.problems
	}
	return c, d.warnings, nil
}

// decoder walks the file along the table of options.
type decoder struct {
	file     string
	policies []string // built-in ones
	options  []option
	lines    map[string]int // where each key was given
	problems Problems
	warnings Problems
}

func (d *decoder) fault(line int, key, what, do string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Key: key, What: what, Do: do})
}

func (d *decoder) warn(line int, key, what, do string) {
	d.warnings = append(d.warnings, Problem{File: d.file, Line: line, Key: key, What: what, Do: do})
}

// line is where a key stands, or the nearest section around it that does, or 0.
func (d *decoder) line(key string) int {
	for key != "" {
		if l, ok := d.lines[key]; ok {
			return l
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return 0
}

func (d *decoder) given(key string) bool { _, ok := d.lines[key]; return ok }

func (d *decoder) mapping(path string, n *node) {
	switch n.form {
	case null: // an empty section is a section with defaults
		return
	case mapping:
	default:
		what, do := fmt.Sprintf("%s where keys are expected", n.form), "write "+strings.Join(d.below(path), ", ")+" below it"
		if path == "" {
			do = "write keys such as policy: weighted"
		}
		d.fault(n.line, path, what, do)
		return
	}
	for _, e := range n.entries {
		key := join(path, e.key)
		d.lines[key] = e.line
		i := slices.IndexFunc(d.options, func(o option) bool { return o.key == key })
		switch {
		case i >= 0:
			d.options[i].set(d, key, e.value)
		case len(d.below(key)) > 0:
			d.mapping(key, e.value)
		default:
			d.unknown(path, e)
		}
	}
}

// below lists the names that may stand directly under a section.
func (d *decoder) below(path string) []string {
	var out []string
	for _, o := range d.options {
		rest := o.key
		if path != "" {
			var under bool
			if rest, under = strings.CutPrefix(o.key, path+"."); !under {
				continue
			}
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (d *decoder) unknown(path string, e entry) {
	key, siblings := join(path, e.key), d.below(path)
	if what := later(key); what != "" {
		d.fault(e.line, key, "no such key in this version: "+what+" cannot be configured", "remove it")
		return
	}
	do := "known here: " + strings.Join(siblings, ", ")
	if near := meant(e.key, siblings); near != "" {
		do = "did you mean " + near + "?"
	} else if full := d.elsewhere(e.key); full != "" {
		do = "did you mean " + full + "?"
	}
	d.fault(e.line, shown(key), "no such key", do)
}

// elsewhere finds a key of that very name in another section: a misplaced or badly indented one.
func (d *decoder) elsewhere(name string) string {
	for _, o := range d.options {
		if strings.HasSuffix(o.key, "."+name) {
			return o.key
		}
	}
	return ""
}

// later names what a key of the project's documentation will configure once this binary has it.
func later(key string) string {
	if key == "fleet.endpoints.kubernetes" {
		return "discovery by Kubernetes"
	}
	return ""
}

// shown makes text from the file fit for a message: one line, no control characters, not too long.
func shown(s string) string {
	const most = 60
	quoted := fmt.Sprintf("%q", s)
	quoted = quoted[1 : len(quoted)-1]
	if len(quoted) > most {
		quoted = strings.ToValidUTF8(quoted[:most], "") + "…"
	}
	return quoted
}
