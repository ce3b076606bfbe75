package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"presage-lab": main})
}

// leakless fails tests that leave goroutines behind.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
	})
}

// envoyPath finds a real Envoy: in PRESAGE_ENVOY, on the PATH, or where `make tools` puts it.
func envoyPath(t *testing.T) string {
	t.Helper()
	p := os.Getenv("PRESAGE_ENVOY")
	for _, p := range []string{p, filepath.Join("..", "..", ".cache", "envoy", "bin", "envoy")} {
		if _, err := os.Stat(p); p != "" && err == nil {
			abs, err := filepath.Abs(p)
			if err != nil {
				t.Fatal(err)
			}
			return abs
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		p := filepath.Join(dir, "envoy")
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skip("no Envoy: set PRESAGE_ENVOY, or run make tools")
	return ""
}
