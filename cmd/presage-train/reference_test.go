package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// TestGoldenReference keeps the reference page equal to the help of the commands, and every help to
// one screen that begins with an example.
func TestGoldenReference(t *testing.T) {
	var page strings.Builder
	page.WriteString("# presage-train\n\n<!-- Generated from cmd/presage-train; rewrite it with: make golden -->\n")
	page.WriteString("\nExit status: 0 ok, 1 failed, 2 wrong usage or bad input, 130 interrupted. Results go to stdout, everything else to stderr.\n")
	for _, command := range []string{"", "eval", "fit", "promote", "list", "show", "export"} {
		args := []string{"--help"}
		if command != "" {
			args = []string{command, "--help"}
		}
		code, text, errs := execute(t, args...)
		if code != 0 {
			t.Fatalf("%q: %d, %s", command, code, errs)
		}
		if n := strings.Count(text, "\n"); n > 40 {
			t.Errorf("%q: %d lines", command, n)
		}
		if !strings.HasPrefix(text, "Example: presage-train ") {
			t.Errorf("%q begins with %.40q", command, text)
		}
		for line := range strings.Lines(text) {
			if len([]rune(line)) > 80+1 {
				t.Errorf("%q: %d columns: %s", command, len(line), line)
			}
		}
		page.WriteString("\n## presage-train " + command + "\n\n```\n" + text + "```\n")
	}
	got := strings.ReplaceAll(page.String(), "## presage-train \n", "## presage-train\n")
	path := filepath.Join("..", "..", "docs", "reference", "presage-train.md")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("presage-train.md is stale; rewrite it with: make golden\n%s", diff)
	}
}
