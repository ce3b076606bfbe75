package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// TestReferenceExamplesLoad: what the reference page shows can be used as it stands.
func TestReferenceExamplesLoad(t *testing.T) {
	for i, block := range strings.Split(Reference(), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if _, _, err := Parse("reference.yaml", []byte(source+text), policies()); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
	}
}

// TestGoldenErrors keeps the whole list of messages for a file full of faults.
func TestGoldenErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/faults.yaml.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Parse("faults.yaml", data, policies())
	if err == nil {
		t.Fatal("no error")
	}
	golden(t, "testdata/faults.golden.txt", err.Error()+"\n")
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	path = filepath.FromSlash(path)
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
		t.Errorf("%s differs; see the diff, then rewrite it with: make golden\n%s", path, diff)
	}
}

// TestDocumentedExperimentsLoad: what the page on experiments shows can be used as it stands.
func TestDocumentedExperimentsLoad(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "experiments.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("%d examples", len(blocks))
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		c, warnings, err := Parse("experiments.yaml", []byte(source+text), policies())
		if err != nil || len(warnings) > 0 {
			t.Errorf("example %d: %v, %v", i, warnings, err)
		} else if len(c.Experiment.Arms)+len(c.Shadow) == 0 {
			t.Errorf("example %d shows neither", i)
		}
	}
}

// TestDocumentedLoopLoads: the configuration that the page on training shows can be used as it stands.
func TestDocumentedLoopLoads(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "training.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n# presage.yaml\n")
	text, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page shows none")
	}
	c, warnings, err := Parse("training.yaml", []byte(text), policies())
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if c.Models.Dir == "" || c.Trace != (Trace{Dir: "data/trace", Keep: Default().Trace.Keep, Budget: Default().Trace.Budget}) {
		t.Errorf("%+v %+v", c.Models, c.Trace)
	}
}
