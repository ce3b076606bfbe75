// Package terminal is where the commands write: results, notes and progress, with colour, width and
// signs as the terminal at hand can show them.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

// assumedWidth is the width of lines where the terminal does not tell.
const assumedWidth = 80

// Terminal is where a command writes: results to Out, everything else to Err.
type Terminal struct {
	Out, Err io.Writer
	Width    int  // columns
	UTF8     bool // signs beyond ASCII can be shown
	Color    bool // on Out; see Choose

	env      func(string) string
	outTTY   bool
	errTTY   bool
	progress string    // on the screen now
	said     time.Time // when progress was last written
}

// New returns the terminal of two files in an environment.
func New(out, err *os.File, env func(string) string) *Terminal {
	t := &Terminal{Out: out, Err: err, Width: assumedWidth, env: env}
	var width int
	if width, t.outTTY = size(out); width > 0 {
		t.Width = width
	}
	_, t.errTTY = size(err)
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			t.UTF8 = strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
			break
		}
	}
	return t
}

// size returns the columns of a terminal, and false for anything else.
func size(f *os.File) (columns int, tty bool) {
	var w struct{ row, col, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&w))) //nolint:gosec // the one way to ask
	return int(w.col), errno == 0
}

// Choose settles whether to use colour: "always", "never", or "auto" for what the terminal and the
// environment (NO_COLOR, TERM=dumb) say.
func (t *Terminal) Choose(color string) {
	switch color {
	case "always":
		t.Color = true
	case "never":
		t.Color = false
	default:
		t.Color = t.outTTY && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb"
	}
}

// Attributes for Paint.
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint gives a text an attribute, where colour is used.
func (t *Terminal) Paint(attribute, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + attribute + "m" + s + "\x1b[0m"
}

// JSON prints v as one line of results.
func (t *Terminal) JSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode the result: %w", err)
	}
	_, err = fmt.Fprintf(t.Out, "%s\n", b)
	return err
}

// Result prints a line of results.
func (t *Terminal) Result(format string, args ...any) {
	t.wipe()
	fmt.Fprintf(t.Out, format+"\n", args...)
}

// Note prints a line beside the results.
func (t *Terminal) Note(format string, args ...any) {
	t.wipe()
	fmt.Fprintf(t.Err, format+"\n", args...)
}

// How often progress is shown on a terminal, and elsewhere.
const (
	refresh = 200 * time.Millisecond
	remark  = 10 * time.Second
)

// Progress shows how far a command is: one line that is written over on a terminal, else a line
// every ten seconds.
func (t *Terminal) Progress(now time.Time, line string) {
	every := remark
	if t.errTTY {
		every = refresh
	}
	if now.Sub(t.said) < every {
		return
	}
	t.said = now
	if !t.errTTY {
		fmt.Fprintln(t.Err, line)
		return
	}
	line = clip(line, t.Width-1)
	pad := max(0, utf8.RuneCountInString(t.progress)-utf8.RuneCountInString(line))
	fmt.Fprint(t.Err, "\r", line, strings.Repeat(" ", pad))
	t.progress = line
}

// wipe removes the progress line from the screen.
func (t *Terminal) wipe() {
	if t.progress != "" {
		fmt.Fprint(t.Err, "\r", strings.Repeat(" ", utf8.RuneCountInString(t.progress)), "\r")
		t.progress = ""
	}
}

func clip(s string, columns int) string {
	if utf8.RuneCountInString(s) <= columns {
		return s
	}
	return string([]rune(s)[:max(0, columns)])
}

// Bar draws a share of one as a bar of so many columns.
func (t *Terminal) Bar(share float64, columns int) string {
	full := min(max(int(share*float64(columns)), 0), columns)
	if t.UTF8 {
		return strings.Repeat("█", full) + strings.Repeat("░", columns-full)
	}
	return strings.Repeat("#", full) + strings.Repeat(".", columns-full)
}
