package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// assumedWidth is the width of lines where no terminal tells.
const assumedWidth = 80

// terminal is where a command writes: results to out, everything else to err.
type terminal struct {
	out, err io.Writer
	env      func(string) string
	width    int
	tty      bool // out is a terminal
	color    bool
	utf8     bool
}

func newTerminal(out, err *os.File, env func(string) string) *terminal {
	t := &terminal{out: out, err: err, env: env, width: assumedWidth}
	if w, ok := terminalWidth(out); ok {
		t.tty = true
		if w > 0 {
			t.width = w
		}
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			t.utf8 = strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
			break
		}
	}
	return t
}

// choose settles whether to use colour, from the --color flag, the environment and the terminal.
func (t *terminal) choose(flag string) {
	switch flag {
	case "always":
		t.color = true
	case "never":
		t.color = false
	default:
		t.color = t.tty && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb"
	}
}

// bold makes text bold where colour is used.
func (t *terminal) bold(s string) string {
	if !t.color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// json prints v as one line.
func (t *terminal) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode the result: %w", err)
	}
	_, err = fmt.Fprintf(t.out, "%s\n", b)
	return err
}

// columns prints a heading and rows of two columns, wrapping the second at the terminal's width.
func (t *terminal) columns(rows [][2]string) {
	left := 0
	for _, r := range rows {
		left = max(left, utf8.RuneCountInString(r[0]))
	}
	left += 2
	for _, r := range rows {
		indent := r[0] + strings.Repeat(" ", left-utf8.RuneCountInString(r[0]))
		for _, line := range wrap(r[1], max(t.width-left, 20)) {
			fmt.Fprintln(t.out, indent+line)
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
