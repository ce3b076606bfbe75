package datasets

import (
	"os"
	"path/filepath"
	"testing"
)

// dataDir is the folder of the reference data: PRESAGE_DATA, or ../shared/data beside the repository.
// The test is skipped where it is absent.
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
			if root == filepath.Dir(root) {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference data in %s: set PRESAGE_DATA", dir)
	}
	return dir
}

// scanAny reads a file whatever its records are and returns how many it handed out.
func scanAny(f Format, path string) (int, *Report, error) {
	switch formats[f].scan.(type) {
	case func(*source, func(*Rate) error) error:
		return count[Rate](f, path)
	case func(*source, func(*Lengths) error) error:
		return count[Lengths](f, path)
	case func(*source, func(*Sample) error) error:
		return count[Sample](f, path)
	case func(*source, func(*Pass) error) error:
		return count[Pass](f, path)
	case func(*source, func(*Step) error) error:
		return count[Step](f, path)
	case func(*source, func(*Aggregate) error) error:
		return count[Aggregate](f, path)
	case func(*source, func(*Stage) error) error:
		return count[Stage](f, path)
	case func(*source, func(*Profile) error) error:
		return count[Profile](f, path)
	case func(*source, func(*Cost) error) error:
		return count[Cost](f, path)
	case func(*source, func(*Pods) error) error:
		return count[Pods](f, path)
	}
	return count[Row](f, path)
}

func count[T Record](f Format, path string) (int, *Report, error) {
	n := 0
	rep, err := ScanAs(f, path, func(*T) error { n++; return nil })
	return n, rep, err
}
