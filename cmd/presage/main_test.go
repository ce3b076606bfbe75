package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/loopback"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"presage": main})
}

// TestGoldenScripts runs the commands as an operator's shell would: not on a terminal, 80 columns, no colour.
func TestGoldenScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *rewrite,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("LANG", "C.UTF-8")
			free, err := loopback.Free(context.Background(), 3)
			if err != nil {
				return err
			}
			for i, name := range []string{"EXTPROC", "HEALTH", "ADMIN"} {
				env.Setenv(name, free[i])
			}
			return nil
		},
	})
}

// TestHelpIsShort: every help fits a screen and begins with an example that is one.
func TestHelpIsShort(t *testing.T) {
	for _, command := range []string{"", "serve", "check", "policies", "explain", "version"} {
		text := helpOf(t, command)
		if n := strings.Count(text, "\n"); n > 40 {
			t.Errorf("%q: %d lines", command, n)
		}
		if want := "Example: presage "; !strings.HasPrefix(text, want) {
			t.Errorf("%q begins with %.40q", command, text)
		}
		for line := range strings.Lines(text) {
			if len([]rune(line)) > 80+1 {
				t.Errorf("%q: %d columns: %s", command, len(line), line)
			}
		}
	}
}

func helpOf(t *testing.T, command string) string {
	t.Helper()
	var out strings.Builder
	args := []string{"--help"}
	if command != "" {
		args = []string{command, "--help"}
	}
	if code := run(t.Context(), args, &terminal.Terminal{Out: &out, Err: &out, Width: 80}); code != 0 {
		t.Fatalf("%q --help: exit %d\n%s", command, code, out.String())
	}
	return out.String()
}

// TestGoldenReference keeps the reference pages equal to the code.
func TestGoldenReference(t *testing.T) {
	var cli, policies strings.Builder
	cli.WriteString("# Commands\n\n<!-- Generated from cmd/presage; rewrite it with: make golden -->\n")
	cli.WriteString("\nExit status: 0 ok, 1 failed, 2 wrong usage or bad input, 130 interrupted. Results go to stdout, everything else to stderr.\n")
	for _, command := range []string{"", "serve", "check", "policies", "explain", "version"} {
		cli.WriteString("\n## presage " + command + "\n\n```\n" + helpOf(t, command) + "```\n")
	}
	policies.WriteString("# Policies\n\n<!-- Generated from the registry of policies; rewrite it with: make golden -->\n\n| name | what it does |\n|---|---|\n")
	registry := serve.Policies()
	for _, name := range registry.Names() {
		policies.WriteString("| `" + name + "` | " + registry[name].About + " |\n")
	}
	policies.WriteString("\nKnobs are set behind the name, as in `predictive:stall=0.3,slo=0`.\n\n| policy | knob | default | bounds | what it is |\n|---|---|---|---|---|\n")
	for _, name := range registry.Names() {
		for _, k := range registry[name].Knobs {
			fmt.Fprintf(&policies, "| `%s` | `%s` | %g | %g to %g | %s |\n", name, k.Name, k.Default, k.Low, k.High, k.About)
		}
	}
	for page, got := range map[string]string{
		"config.md":   config.Reference(),
		"cli.md":      strings.ReplaceAll(cli.String(), "## presage \n", "## presage\n"),
		"policies.md": policies.String(),
	} {
		path := filepath.Join("..", "..", "docs", "reference", page)
		if *rewrite {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is stale; rewrite it with: make golden\n%s", page, diff)
		}
	}
}

// TestDeployExamplesLoad: what deploy/ shows can be used as it stands.
func TestDeployExamplesLoad(t *testing.T) {
	c, warnings, err := config.Load("../../deploy/presage.yaml", serve.Policies().Names())
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if err := serve.CheckFiles(c); err != nil {
		t.Error(err)
	}
}

// TestDeployEnvoyIsValid has a real Envoy read the example.
func TestDeployEnvoyIsValid(t *testing.T) {
	envoy := os.Getenv("PRESAGE_ENVOY")
	if _, err := os.Stat(envoy); err != nil {
		t.Skip("no Envoy: set PRESAGE_ENVOY to its path, or run make tools")
	}
	out, err := exec.CommandContext(t.Context(), envoy, "--mode", "validate", "-c", "../../deploy/envoy/minimal.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"80 % of it", 5, []string{"80 %", "of it"}},
		{"unbreakable", 4, []string{"unbreakable"}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.text, c.width)); diff != "" {
			t.Errorf("%q at %d: %s", c.text, c.width, diff)
		}
	}
}
