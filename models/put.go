package models

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// Put writes a model and returns its manifest as written. Without a name it becomes the next
// version, v1, v2, …, which never takes the place of another; with a name, which must not look like
// a version, it replaces the one of that name. Schema, Classes and, if zero, Created (from now) are
// filled in.
func (r *Registry) Put(m Manifest, s *predictor.State, now time.Time) (*Manifest, error) {
	r.sweep(now)
	model, err := s.Encode()
	if err != nil {
		return nil, fmt.Errorf("%s: cannot write the model: %w", r.dir, err)
	}
	m.Schema, m.Classes = features.Schema(), len(s.Classes)
	if m.Created.IsZero() {
		m.Created = now.UTC().Truncate(time.Second)
	}
	if m.Name != "" {
		if err := checkName(m.Name); err != nil {
			return nil, err
		}
		if version(m.Name) > 0 {
			return nil, fmt.Errorf("model %q: versions are numbered by the registry; leave the name out or choose another", m.Name)
		}
		return &m, r.put(&m, model, r.root.Rename)
	}
	for range 100 { // others may be putting too
		n, err := r.newest()
		if err != nil {
			return nil, err
		}
		m.Name = fmt.Sprintf("v%d", n+1)
		err = r.put(&m, model, r.linkNew)
		if !errors.Is(err, fs.ErrExist) {
			return &m, err
		}
	}
	return nil, fmt.Errorf("%s: no version is free: too many others are writing here", r.dir)
}

func (r *Registry) put(m *Manifest, model []byte, place func(from, to string) error) error {
	file, err := seal(m, model)
	if err != nil {
		return fmt.Errorf("%s: %w", r.path(m.Name), err)
	}
	if err := r.write(m.Name+suffix, file, place); err != nil {
		return fmt.Errorf("%s: cannot be written: %w; nothing has changed", r.path(m.Name), err)
	}
	return nil
}

// linkNew gives a file a name that must be free.
func (r *Registry) linkNew(from, to string) error {
	err := r.root.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		_ = r.root.Remove(from) // one name is enough
		return err
	}
	// Not every file system has links.
	if _, err := r.root.Lstat(to); err == nil {
		_ = r.root.Remove(from)
		return fs.ErrExist
	}
	return r.root.Rename(from, to)
}

const (
	tempSuffix = ".tmp"
	tempAge    = time.Hour // after which nobody writes it any more
)

// sweep removes what writers left behind that were killed.
func (r *Registry) sweep(now time.Time) {
	files, _ := fs.ReadDir(r.root.FS(), ".") // what cannot be listed cannot be swept
	for _, f := range files {
		if info, err := f.Info(); err == nil && strings.HasPrefix(f.Name(), ".") && strings.HasSuffix(f.Name(), tempSuffix) && now.Sub(info.ModTime()) > tempAge {
			_ = r.root.Remove(f.Name()) // it can wait for the next time
		}
	}
}

// write makes a file appear whole: written under another name, synced, then placed.
func (r *Registry) write(name string, data []byte, place func(from, to string) error) (err error) {
	temp := fmt.Sprintf(".%s.%016x%s", name, rand.Uint64(), tempSuffix)
	f, err := r.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return reason(err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = place(temp, name)
	}
	if err != nil {
		_ = r.root.Remove(temp) // nobody reads it
		return reason(err)
	}
	d, err := r.root.Open(".")
	if err != nil {
		return reason(err)
	}
	defer func() { _ = d.Close() }() // nothing is lost
	return reason(d.Sync())
}

// newest is the highest version, of files that cannot be used too.
func (r *Registry) newest() (int, error) {
	files, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("%s: cannot list the models: %w", r.dir, reason(err))
	}
	most := 0
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), suffix); ok {
			most = max(most, version(name))
		}
	}
	return most, nil
}

// Attach writes a text beside a model, as NAME.KIND: its card. It replaces an older one.
func (r *Registry) Attach(name, kind string, text []byte) error {
	if err := checkName(name + "." + kind); err != nil {
		return err
	}
	if "."+kind == suffix {
		return fmt.Errorf("%s: a text beside a model is no model", r.path(name))
	}
	if err := r.write(name+"."+kind, text, r.root.Rename); err != nil {
		return fmt.Errorf("%s.%s: cannot be written: %w", name, kind, err)
	}
	return nil
}
