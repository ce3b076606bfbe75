package models

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// Registry is an open directory of models. Several processes may use one directory. It is safe for
// concurrent use, but for Changed.
type Registry struct {
	dir  string
	root *os.Root

	seen   string // of the champion, at the last look
	looked time.Time
}

// Open opens a registry, making the directory if need be. The caller closes it.
func Open(dir string) (*Registry, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("%s: cannot keep models here: %w; choose a directory that can be written", dir, reason(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot keep models here: %w", dir, reason(err))
	}
	return &Registry{dir: dir, root: root}, nil
}

// Close closes the registry.
func (r *Registry) Close() error { return r.root.Close() }

// Entry is one file of a registry.
type Entry struct {
	Manifest
	Champion bool
	Bytes    int64
	Err      error // why the file cannot be used; nil: it can
}

const suffix = ".model"

// List returns the models, newest first, files that cannot be used among them. Each file is read and
// checked whole, but for what the model itself says.
func (r *Registry) List() ([]Entry, error) {
	files, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("%s: cannot list the models: %w", r.dir, reason(err))
	}
	champion, err := r.Champion()
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, err
	}
	var out []Entry
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok || checkName(name) != nil {
			continue
		}
		e := Entry{Champion: name == champion}
		m, data, err := r.read(name)
		if err != nil {
			e.Err = err
		} else {
			e.Manifest, e.Bytes = *m, int64(len(data))
		}
		e.Name = name
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(version(b.Name), version(a.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Has reports whether there is a file for a model, of whatever content.
func (r *Registry) Has(name string) bool {
	if checkName(name) != nil {
		return false
	}
	_, err := r.root.Lstat(name + suffix)
	return err == nil
}

// Show returns the manifest of a model.
func (r *Registry) Show(name string) (*Manifest, error) {
	m, _, err := r.read(name)
	return m, err
}

// Load reads a model and checks all of it: whoever restores it gets what was saved.
func (r *Registry) Load(name string) (*Manifest, *predictor.State, error) {
	m, data, err := r.read(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := predictor.DecodeState(data)
	if errors.Is(err, predictor.ErrOther) {
		err = fmt.Errorf("%w: %w", err, ErrSchema)
	}
	if err == nil {
		err = predictor.NewLearner(predictor.Options{}).Restore(*s)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; the model in use stays", r.path(name), err)
	}
	return m, s, nil
}

// read reads a file, checks it and its manifest.
func (r *Registry) read(name string) (*Manifest, []byte, error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	file, err := r.readFile(name+suffix, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: no such model%s", r.path(name), r.others())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: cannot be read: %w; the model in use stays", r.path(name), reason(err))
	}
	m, data, err := unseal(file)
	if err == nil && m.Schema != features.Schema() {
		err = fmt.Errorf("schema %.40q, this program reads %s; refit with presage-train fit: %w", m.Schema, features.Schema(), ErrSchema)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; the model in use stays", r.path(name), err)
	}
	return m, data, nil
}

// others names what there is, for messages.
func (r *Registry) others() string {
	files, _ := fs.Glob(r.root.FS(), "*"+suffix) // the pattern is right
	if len(files) == 0 {
		return "; there are none yet: make one with presage-train fit"
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], suffix)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(version(b), version(a)), cmp.Compare(a, b)) })
	return "; there are " + strings.Join(files[:min(len(files), 8)], ", ")
}

func (r *Registry) path(name string) string { return filepath.Join(r.dir, name+suffix) }

// readFile reads a file of at most so many bytes.
func (r *Registry) readFile(name string, most int64) ([]byte, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("%d bytes, more than %d", info.Size(), most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// checkName refuses names that are no file of the registry.
func checkName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if name == "" || len(name) > 64 || strings.HasPrefix(name, ".") || strings.Trim(name, letters) != "" {
		return fmt.Errorf("model %.70q: no name of a model: use up to 64 letters, digits, dots, dashes", name)
	}
	return nil
}

// version is the number of a name like v41, or 0.
func version(name string) int {
	digits, ok := strings.CutPrefix(name, "v")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// reason is an error of the operating system without the path.
func reason(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
