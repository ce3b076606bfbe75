package terminal

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// fake is a terminal that writes to a buffer.
func fake(tty bool, env map[string]string) (*Terminal, *bytes.Buffer) {
	var b bytes.Buffer
	return &Terminal{Out: &b, Err: &b, Width: 20, env: func(k string) string { return env[k] }, outTTY: tty, errTTY: tty}, &b
}

func TestColorFollowsTerminalAndEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		tty  bool
		env  map[string]string
		want bool
	}{
		"terminal":       {"auto", true, nil, true},
		"pipe":           {"auto", false, nil, false},
		"NO_COLOR":       {"auto", true, map[string]string{"NO_COLOR": "1"}, false},
		"dumb terminal":  {"auto", true, map[string]string{"TERM": "dumb"}, false},
		"never":          {"never", true, nil, false},
		"always, a pipe": {"always", false, map[string]string{"NO_COLOR": "1"}, true},
	} {
		term, _ := fake(c.tty, c.env)
		term.Choose(c.flag)
		if got := term.Paint(Bold, "x"); (got == "\x1b[1mx\x1b[0m") != c.want || !c.want && got != "x" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	term, b := fake(true, nil)
	now := time.Unix(0, 0)
	term.Progress(now, "a long line of progress that does not fit")
	term.Progress(now.Add(time.Millisecond), "too soon")
	term.Progress(now.Add(time.Second), "short")
	term.Result("done")
	want := "\ra long line of prog\rshort" + "              " + "\r     \rdone\n"
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestProgressElsewhereIsALineEveryTenSeconds(t *testing.T) {
	term, b := fake(false, nil)
	for s := range 25 {
		term.Progress(time.Unix(int64(s+100), 0), "line")
	}
	term.Note("end")
	if got, want := b.String(), "line\nline\nline\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignsFollowTheLocale(t *testing.T) {
	for lang, want := range map[string]string{"en_GB.UTF-8": "██░░", "C.utf8": "██░░", "C": "##..", "": "##.."} {
		term := New(os.Stdout, os.Stderr, func(k string) string { return map[string]string{"LANG": lang}[k] })
		if got := term.Bar(0.5, 4); got != want {
			t.Errorf("LANG=%s: %s, want %s", lang, got, want)
		}
	}
	term := New(os.Stdout, os.Stderr, func(k string) string { return map[string]string{"LANG": "C.UTF-8", "LC_ALL": "C"}[k] })
	if term.UTF8 {
		t.Error("LC_ALL does not come before LANG")
	}
	for _, share := range []float64{-1, 2} {
		if got := term.Bar(share, 4); len(got) != 4 {
			t.Errorf("share %v: %q", share, got)
		}
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, tty := size(f); tty {
		t.Errorf("%s is taken for a terminal", os.DevNull)
	}
}
