package calibrate

import (
	"os"
	"path/filepath"
	"testing"
)

// dataDir is the folder of the reference data: PRESAGE_DATA, or ../shared/data beside the repository.
func dataDir(t *testing.T) string {
	t.Helper()
	if underRace {
		t.Skip("takes minutes under the race detector, and the package has no goroutines")
	}
	dir := os.Getenv("PRESAGE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "SOURCES.md")); err != nil {
		t.Skipf("no reference data in %s: set PRESAGE_DATA", dir)
	}
	return dir
}
