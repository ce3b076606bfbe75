package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
)

type policiesCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run lists the policies that a configuration may name.
func (c *policiesCommand) Run(t *terminal.Terminal) error {
	type knob struct {
		Name    string  `json:"name"`
		About   string  `json:"about"`
		Default float64 `json:"default"`
		Low     float64 `json:"low"`
		High    float64 `json:"high"`
	}
	type policy struct {
		Name  string `json:"name"`
		About string `json:"about"`
		Knobs []knob `json:"knobs,omitempty"`
	}
	registry := serve.Policies()
	list := make([]policy, 0, len(registry))
	rows := [][2]string{{"POLICY", "ABOUT"}}
	for _, name := range registry.Names() {
		p := policy{Name: name, About: registry[name].About}
		rows = append(rows, [2]string{name, p.About})
		for _, k := range registry[name].Knobs {
			p.Knobs = append(p.Knobs, knob(k))
			rows = append(rows, [2]string{"  :" + k.Name + "=" + strconv.FormatFloat(k.Default, 'g', -1, 64), k.About})
		}
		list = append(list, p)
	}
	if c.JSON {
		return t.JSON(map[string][]policy{"policies": list})
	}
	columns(t, rows)
	return nil
}

// columns prints rows of two columns, wrapping the second at the terminal's width.
func columns(t *terminal.Terminal, rows [][2]string) {
	left := 0
	for _, r := range rows {
		left = max(left, utf8.RuneCountInString(r[0])+2)
	}
	for _, r := range rows {
		indent := r[0] + strings.Repeat(" ", left-utf8.RuneCountInString(r[0]))
		for _, line := range wrap(r[1], max(t.Width-left, 20)) {
			t.Result("%s", indent+line)
			indent = strings.Repeat(" ", left)
		}
	}
}

// wrap breaks text between words into lines of at most width characters, where the words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
