package serve

import (
	"errors"
	"hash/maphash"
	"io"
	"os"

	"github.com/presage-router/presage/cmd/internal/config"
)

// watcher notices that the content of a file has changed. Reading the file beats notifications, which
// miss the symbolic links that Kubernetes swaps.
type watcher struct {
	path string
	seed maphash.Seed
	last uint64
}

func newWatcher(path string) *watcher {
	w := &watcher{path: path, seed: maphash.MakeSeed()}
	w.last = w.sum()
	return w
}

// sum fingerprints the file; one that cannot be read has a fingerprint of its own.
func (w *watcher) sum() uint64 {
	f, err := os.Open(w.path)
	if err != nil {
		return maphash.String(w.seed, err.Error())
	}
	defer func() { _ = f.Close() }()
	var h maphash.Hash
	h.SetSeed(w.seed)
	if _, err := io.CopyN(&h, f, config.MaxFile+1); err != nil && !errors.Is(err, io.EOF) {
		return maphash.String(w.seed, err.Error())
	}
	return h.Sum64()
}

// changed reports whether the content is another than at the last call.
func (w *watcher) changed() bool {
	sum := w.sum()
	was := w.last
	w.last = sum
	return sum != was
}
