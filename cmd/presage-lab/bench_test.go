package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestBenchScripts runs every benchmark for a moment, the service as the child process that it is.
func TestBenchScripts(t *testing.T) {
	envoy := os.Getenv("PRESAGE_ENVOY")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "bench"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("PRESAGE_ENVOY", envoy)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "envoy" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, err := os.Stat(envoy)
			return err == nil, nil
		},
	})
}
