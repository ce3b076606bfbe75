package telemetry

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"org/name":                        "org/name",
		"../../etc/passwd":                "../../etc/passwd",
		"Größe 東京 ✓":                      "Größe 東京 ✓",
		"m\nlevel=error msg=forged":       `m\nlevel=error msg=forged`,
		"m\u0000x":                        `m\x00x`,
		"a\r\nx-evil: 1":                  `a\r\nx-evil: 1`,
		"\x1b[2J":                         `\x1b[2J`,
		"\u2028line\u2029\u202egnp":       `\u2028line\u2029\u202egnp`,
		"\u0085\u009b":                    `\u0085\u009b`,
		"bad \xff byte":                   `bad \xff byte`,
		"real \uFFFD":                     "real \uFFFD",
		strings.Repeat("x", 256):          strings.Repeat("x", 256),
		strings.Repeat("x", 10_000):       strings.Repeat("x", 256) + "… (10000 bytes)",
		strings.Repeat("\n", 300) + "end": strings.Repeat(`\n`, 128) + "… (303 bytes)",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%.20q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain", "\n", "\xff\xfe", "\u202e", "\uFFFD", strings.Repeat("é", 200), strings.Repeat("\x00", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || len(got) > maxText+64 {
			t.Fatalf("%d bytes of %q", len(got), got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if Clean(got) != got && len(got) <= maxText {
			t.Fatalf("cleaning twice: %q", got)
		}
	})
}

func TestCleanTextIsNotCopied(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Clean("meta-llama/Llama-3.1-8B-Instruct") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
