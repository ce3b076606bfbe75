package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// memory is the size of a memtable. It must not depend on options: after a crash the write-ahead log
// is replayed into one, and one that is smaller than the one before ends the process.
const memory = 4 << 20

// openStore opens the store with little memory: rows are written once and read seldom.
func openStore(dir string) (*badger.DB, error) {
	o := badger.DefaultOptions(dir).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithSyncWrites(true).
		WithDetectConflicts(false).
		WithMemTableSize(memory).
		WithNumMemtables(2).
		WithBaseTableSize(memory / 4).
		WithBaseLevelSize(memory).
		WithNumLevelZeroTables(3).
		WithNumLevelZeroTablesStall(8).
		WithNumCompactors(2).
		WithNumGoroutines(1).
		WithBlockCacheSize(4 << 20).
		WithValueLogFileSize(1 << 20).
		WithValueThreshold(64 << 10)
	db, err := badger.Open(o)
	switch {
	case err == nil:
		return db, nil
	case strings.Contains(err.Error(), "directory lock"):
		return nil, fmt.Errorf("%s: in use by another process; stop it, or give each process a directory of its own: %w", dir, ErrLocked)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: cannot be written: %w; choose another directory, or switch the trace off", dir, reason(err))
	}
	return nil, fmt.Errorf("%s: cannot open the trace: %w; move it away to begin a new one", dir, err)
}

// ErrLocked is the reason for which [Open] fails where another process has the log open.
var ErrLocked = errors.New("the log is locked")

// Exists reports whether a directory holds a log.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	return err == nil
}

// usage is the number of bytes that a directory takes on disk. Files of the store are longer than
// what they hold; what counts is what is allocated.
func usage(dir string) (int64, error) {
	var sum int64
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone since it was listed
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		} else {
			sum += info.Size()
		}
	}
	return sum, nil
}

// free is the number of bytes that this process may still write to the disk of a directory.
func free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(min(st.Bavail, 1<<40)) * st.Bsize, nil //nolint:unconvert // their types differ between systems
}

// reason is an error of the operating system without the path.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
