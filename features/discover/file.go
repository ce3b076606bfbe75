package discover

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// File is an endpoints file, watched by polling: it sees edits in place, renames onto it and swapped
// symbolic links, as of a mounted ConfigMap, on every file system. A file is read once it has stood
// still for two looks in a row; only a rename guarantees that nobody reads half of it. A file that
// is bad, empty or gone is reported and the set in force stays; no endpoint at all is `endpoints: []`.
type File struct {
	Path  string
	Every time.Duration // between looks; 0: DefaultEvery
}

// DefaultEvery is the time between looks at a source.
const DefaultEvery = time.Second

// settle is the time between the two looks at a file that changed, and maxSettle the number of such
// looks after which a file that never stands still is read all the same.
const (
	settle    = 100 * time.Millisecond
	maxSettle = 20
)

// Load reads an endpoints file once: see [Parse].
func Load(path string) ([]*fleet.Endpoint, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// load reads a file, or a little more than may be of it.
func load(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

func unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: cannot be read: %w; give a readable file", path, err)
}

// Run watches the file.
func (f *File) Run(ctx context.Context, out chan<- Update) {
	w := watch{path: f.Path}
	every := f.Every
	if every <= 0 {
		every = DefaultEvery
	}
	for ctx.Err() == nil {
		if u, news := w.look(time.Now()); news {
			send(ctx, out, u)
		}
		if w.moving > 0 {
			pause(ctx, min(settle, every))
		} else {
			pause(ctx, every)
		}
	}
}

// watch remembers what was last seen of a file.
type watch struct {
	path    string
	seen    os.FileInfo // at the last look; nil: not there
	read    os.FileInfo // when it was last read; nil: must be read
	sum     [sha256.Size]byte
	started bool
	moving  int    // looks since it last stood still
	failure string // what was last reported; empty: it could be read
}

// look checks the file and returns an update if there is news.
func (w *watch) look(now time.Time) (u Update, news bool) {
	info, err := os.Stat(w.path)
	if err != nil {
		w.seen, w.read, w.moving = nil, nil, 0
		return w.failed(unreadable(w.path, err))
	}
	if w.read != nil && same(info, w.read) {
		w.seen, w.moving = info, 0
		return u, false
	}
	if w.started && (w.seen == nil || !same(info, w.seen)) && w.moving < maxSettle {
		w.seen = info
		w.moving++
		return u, false
	}
	w.seen, w.moving, w.started = info, 0, true
	data, err := load(w.path)
	if err != nil {
		w.read = nil
		return w.failed(err)
	}
	w.read = info
	// A file written just now may be written again within the resolution of its time stamp, and one
	// that changed while it was read is another: both are read once more at the next look.
	if after, err := os.Stat(w.path); err != nil || !same(after, info) || now.Sub(info.ModTime()) < 2*time.Second {
		w.read = nil
	}
	sum := sha256.Sum256(data)
	if sum == w.sum && w.failure == "" {
		return u, false
	}
	set, err := Parse(w.path, data)
	if err != nil {
		w.sum = sum
		return w.failed(err)
	}
	w.sum, w.failure = sum, ""
	return Update{Endpoints: set}, true
}

// failed reports an error, once.
func (w *watch) failed(err error) (Update, bool) {
	if w.failure == err.Error() {
		return Update{}, false
	}
	w.failure = err.Error()
	return Update{Err: err}, true
}

// same reports whether two looks saw the same file unchanged.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

var _ Source = (*File)(nil)
