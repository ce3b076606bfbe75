package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// ErrNone is the reason where there is no champion, or none before it.
var ErrNone = errors.New("no champion yet")

const (
	championFile = "champion.json"
	maxPast      = 50 // champions remembered
)

// throne is what champion.json holds.
type throne struct {
	Version  int       `json:"version"`
	Champion string    `json:"champion"`
	Since    time.Time `json:"since"`
	Past     []string  `json:"past"` // those before it, newest first
}

func (r *Registry) throne() (*throne, error) {
	path := filepath.Join(r.dir, championFile)
	data, err := r.readFile(championFile, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return &throne{Version: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, reason(err))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	t := new(throne)
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("%s: %w: %w; promote a model to write it anew", path, err, ErrDamaged)
	}
	if t.Version != 1 {
		return nil, fmt.Errorf("%s: version %d, this program reads 1: %w", path, t.Version, ErrSchema)
	}
	for _, name := range append([]string{t.Champion}, t.Past...) {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, err, ErrDamaged)
		}
	}
	return t, nil
}

// Champion returns the name of the champion, or an error that is [ErrNone].
func (r *Registry) Champion() (string, error) {
	t, err := r.throne()
	if err != nil {
		return "", err
	}
	if t.Champion == "" {
		return "", fmt.Errorf("%s: %w; promote one with presage-train promote", r.dir, ErrNone)
	}
	return t.Champion, nil
}

// Serving is the name under which a running service keeps what it has learned, over and over. It
// cannot be promoted: a champion does not change.
const Serving = "serving"

// Promote makes a model the champion, after checking all of it.
func (r *Registry) Promote(name string, now time.Time) error {
	if name == Serving {
		return fmt.Errorf("model %q: what a running service learns, written anew every few minutes: it cannot be champion; fit a model from the trace with presage-train fit", name)
	}
	if _, _, err := r.Load(name); err != nil {
		return err
	}
	t, err := r.throne()
	if errors.Is(err, ErrDamaged) {
		t, err = &throne{Version: 1}, nil
	}
	if err != nil || t.Champion == name {
		return err
	}
	if t.Champion != "" {
		t.Past = append([]string{t.Champion}, t.Past...)
		t.Past = t.Past[:min(len(t.Past), maxPast)]
	}
	return r.crown(t, name, now)
}

// Rollback makes the champion before this one champion again, after checking it, and returns its
// name. Without one the error is [ErrNone].
func (r *Registry) Rollback(now time.Time) (string, error) {
	t, err := r.throne()
	if err != nil {
		return "", err
	}
	if len(t.Past) == 0 {
		return "", fmt.Errorf("%s: no champion before %q: %w", r.dir, t.Champion, ErrNone)
	}
	name := t.Past[0]
	if _, _, err := r.Load(name); err != nil {
		return "", err
	}
	t.Past = t.Past[1:]
	return name, r.crown(t, name, now)
}

func (r *Registry) crown(t *throne, name string, now time.Time) error {
	t.Champion, t.Since = name, now.UTC().Truncate(time.Second)
	data, err := json.MarshalIndent(t, "", "  ")
	if err == nil {
		err = r.write(championFile, append(data, '\n'), r.root.Rename)
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w; the champion stays", filepath.Join(r.dir, championFile), err)
	}
	return nil
}

// lookAfter is the least time between two looks at the directory.
const lookAfter = time.Second

// Changed reports whether the champion is another one than at the last call, or its file was
// replaced; the first call reports whether there is one. It looks at most once a second and costs
// two calls of the operating system then. What cannot be read counts as unchanged.
func (r *Registry) Changed(now time.Time) bool {
	if now.Sub(r.looked).Abs() < lookAfter {
		return false
	}
	r.looked = now
	name, err := r.Champion()
	if err != nil {
		return false
	}
	info, err := r.root.Stat(name + suffix)
	if err != nil {
		return false
	}
	seen := fmt.Sprintf("%s %d %d", name, info.Size(), info.ModTime().UnixNano())
	if seen == r.seen {
		return false
	}
	r.seen = seen
	return true
}
