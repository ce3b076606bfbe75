package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dataDir is where the shared measurements are, or the test is skipped.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PRESAGE_DATA")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(root)
			if up == root {
				t.Skip("no go.mod above: the data directory is not known")
			}
			root = up
		}
		dir = filepath.Join(filepath.Dir(root), "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no measurements: %v", err)
	}
	return dir
}

func TestEnginesAgreeWithMeasurements(t *testing.T) {
	checks, err := Validate(dataDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Logf("%-100s %5d rows, error %.3f, limit %.2f", c.Name, c.Rows, c.Error, c.Limit)
		if !c.OK {
			t.Errorf("%s: error %.3f over %d rows, limit %.2f", c.Name, c.Error, c.Rows, c.Limit)
		}
	}
	if len(checks) < 20 {
		t.Errorf("%d checks", len(checks))
	}
}

func TestValidateNeedsMeasurements(t *testing.T) {
	if _, err := Validate(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no measurement") {
		t.Errorf("error %v", err)
	}
}
