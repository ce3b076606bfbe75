package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// learned is a model whose law says theta1 seconds per token.
func learned(theta1 float64) *predictor.State {
	law := predictor.GenericLaw()
	law.Theta[1] = theta1
	l := predictor.NewLearner(predictor.Options{Prior: func(fleet.Class) (predictor.Law, bool) { return law, true }})
	l.Meet(unique.Make(fleet.Class{Model: "m", GPU: "H100", TP: 1}))
	s := l.Save()
	return &s
}

func open(t testing.TB, dir string) *Registry {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func put(t testing.TB, r *Registry, name string, theta1 float64) string {
	t.Helper()
	m, err := r.Put(Manifest{Name: name, Rows: 10, Data: "d", Since: now.Add(-time.Hour), Until: now, Metrics: json.RawMessage(`{"ttft":1}`)}, learned(theta1), now)
	if err != nil {
		t.Fatal(err)
	}
	return m.Name
}

func TestPutLoadPromoteRollBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	r := open(t, dir)
	if _, err := r.Champion(); !errors.Is(err, ErrNone) {
		t.Errorf("champion of an empty registry: %v", err)
	}
	if _, err := r.Rollback(now); !errors.Is(err, ErrNone) {
		t.Errorf("rollback in an empty registry: %v", err)
	}
	if r.Changed(now) {
		t.Error("an empty registry changed")
	}
	for i, want := range []string{"v1", "v2", "v3"} {
		if got := put(t, r, "", float64(i+1)*1e-5); got != want {
			t.Errorf("named %s, want %s", got, want)
		}
	}
	put(t, r, "live", 9e-5)
	put(t, r, "live", 8e-5)
	for _, name := range []string{"v1", "v2", "v2", "live"} {
		if err := r.Promote(name, now); err != nil {
			t.Fatal(err)
		}
	}
	m, s, err := r.Load("live")
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{Name: "live", Schema: features.Schema(), Created: now, Data: "d", Rows: 10, Since: now.Add(-time.Hour), Until: now, Classes: 1, Metrics: json.RawMessage(`{"ttft":1}`)}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if got := s.Classes[0].Prior.Theta[1]; got != 8e-5 {
		t.Errorf("theta1 %v", got)
	}
	clock := now
	check := func(champion string) {
		t.Helper()
		clock = clock.Add(time.Minute)
		other := open(t, dir) // another process
		if got, err := other.Champion(); err != nil || got != champion {
			t.Errorf("champion %s, %v; want %s", got, err, champion)
		}
		if !r.Changed(clock) || r.Changed(clock.Add(time.Minute)) {
			t.Errorf("%s: change not seen, or seen twice", champion)
		}
		clock = clock.Add(time.Minute)
	}
	check("live")
	for _, champion := range []string{"v2", "v1"} {
		if got, err := r.Rollback(now); err != nil || got != champion {
			t.Errorf("rolled back to %s, %v; want %s", got, err, champion)
		}
		check(champion)
	}
	list, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
		if e.Err != nil || e.Champion != (e.Name == "v1") {
			t.Errorf("%+v", e)
		}
	}
	if diff := cmp.Diff([]string{"v3", "v2", "v1", "live"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestB37BadFilesChangeNothing: every spoiled file is refused with its name and the reason, by
// loading and promoting alike, and the champion stays.
func TestB37BadFilesChangeNothing(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	put(t, r, "", 1e-5)
	put(t, r, "", 2e-5)
	if err := r.Promote("v1", now); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "v2.model")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reseal := func(edit func(*Manifest, *predictor.State)) []byte {
		m, data, err := unseal(good)
		if err != nil {
			t.Fatal(err)
		}
		s, err := predictor.DecodeState(data)
		if err != nil {
			t.Fatal(err)
		}
		edit(m, s)
		if data, err = s.Encode(); err != nil {
			t.Fatal(err)
		}
		file, err := seal(m, data)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)*2/3] ^= 4
	for name, c := range map[string]struct {
		file []byte
		want string
		is   error
	}{
		"empty":         {nil, "empty", ErrDamaged},
		"cut to 60 %":   {good[:len(good)*6/10], "checksum", ErrDamaged},
		"cut in line 1": {good[:40], "first line", ErrDamaged},
		"one bit":       {flipped, "checksum", ErrDamaged},
		"longer":        {append(bytes.Clone(good), "\n{}"...), "checksum", ErrDamaged},
		"foreign":       {[]byte("\x80\x04\x95pickle"), "does not begin with", ErrForeign},
		"newer file":    {bytes.Replace(good, []byte(" 1 "), []byte(" 9 "), 1), "file version 9", ErrSchema},
		"other schema":  {reseal(func(m *Manifest, _ *predictor.State) { m.Schema = "v0-00000000" }), `schema "v0-00000000"`, ErrSchema},
		"schema inside": {reseal(func(_ *Manifest, s *predictor.State) { s.Schema = "v0-00000000" }), "schema", ErrSchema},
		"model version": {reseal(func(_ *Manifest, s *predictor.State) { s.Version = 7 }), "model version 7", ErrSchema},
		"fewer numbers": {reseal(func(_ *Manifest, s *predictor.State) { s.Classes[0].Theta.Theta = []float64{1} }), "1 values, not 4", nil},
		"no covariance": {reseal(func(_ *Manifest, s *predictor.State) { s.Classes[0].Phi.Cov[0] = -1 }), "no covariance", nil},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := r.Load("v2")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.Promote("v2", now); err == nil {
			t.Errorf("%s: promoted", name)
		}
		if got, err := r.Champion(); err != nil || got != "v1" {
			t.Errorf("%s: champion %s, %v", name, got, err)
		}
		list, err := r.List()
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %d listed, %v", name, len(list), err)
		}
	}
	if got := put(t, r, "", 1e-5); got != "v3" {
		t.Errorf("put as %s beside a bad file", got)
	}
}

func TestOversizedFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	f, err := os.Create(filepath.Join(dir, "big.model"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxFile+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Show("big"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

// TestB49NamesStayInside: no name leads out of the directory, by itself or by a link.
func TestB49NamesStayInside(t *testing.T) {
	parent := t.TempDir()
	outside := open(t, filepath.Join(parent, "outside"))
	put(t, outside, "secret", 1e-5)
	dir := filepath.Join(parent, "models")
	r := open(t, dir)
	for _, name := range []string{"../outside/secret", "/abs/x", "a/../../b", "org/name", "m\x00x", "m\nlevel=error", strings.Repeat("x", 10000), "..", "", ".hidden", "https://evil.example.test/m"} {
		_, _, err := r.Load(name)
		if err == nil || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 600 {
			t.Errorf("load %.40q: %v", name, err)
		}
		if err := r.Promote(name, now); err == nil {
			t.Errorf("promoted %.40q", name)
		}
		if name != "" {
			if _, err := r.Put(Manifest{Name: name}, learned(1e-5), now); err == nil {
				t.Errorf("put %.40q", name)
			}
		}
	}
	if err := os.Symlink(filepath.Join("..", "outside", "secret.model"), filepath.Join(dir, "link.model")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Show("link"); err == nil {
		t.Error("a link leads out of the directory")
	}
	if _, err := r.Put(Manifest{Name: "v7"}, learned(1e-5), now); err == nil || !strings.Contains(err.Error(), "numbered by the registry") {
		t.Errorf("a version of the caller's choice: %v", err)
	}
}

// TestSpoiledChampionFile: a damaged file is named, and the next promotion writes it anew; that of a
// newer program is left as it is.
func TestSpoiledChampionFile(t *testing.T) {
	for _, c := range []struct {
		text, want string
		kept       bool
	}{
		{"{", "damaged", false},
		{`{"version":1,"champion":"../../x"}`, "no name of a model", false},
		{`{"version":1,"more":1}`, "unknown field", false},
		{`{"version":2}`, "version 2", true},
	} {
		dir := t.TempDir()
		r := open(t, dir)
		put(t, r, "", 1e-5)
		path := filepath.Join(dir, championFile)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Champion(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), championFile) {
			t.Errorf("%s: %v", c.text, err)
		}
		err := r.Promote("v1", now)
		if !c.kept {
			if name, after := r.Champion(); err != nil || after != nil || name != "v1" {
				t.Errorf("%s: promotion: %v; champion %q, %v", c.text, err, name, after)
			}
			continue
		}
		if data, _ := os.ReadFile(path); !errors.Is(err, ErrSchema) || string(data) != c.text {
			t.Errorf("%s: promotion: %v; the file is now %s", c.text, err, data)
		}
	}
}

// TestPutAtOnce: versions put at once get numbers of their own, whole.
func TestPutAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		r := open(t, dir)
		all.Go(func() {
			for range 5 {
				if _, err := r.Put(Manifest{}, learned(1e-5), now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	list, err := open(t, dir).List()
	if err != nil || len(list) != 20 {
		t.Fatalf("%d models, %v", len(list), err)
	}
	for _, e := range list {
		if e.Err != nil {
			t.Error(e.Err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, ".*")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestKilledWritersAreSweptUp: what a killed writer left is no model, and goes in time.
func TestKilledWritersAreSweptUp(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	temp := filepath.Join(dir, ".v1.model.00000000deadbeef.tmp")
	if err := os.WriteFile(temp, []byte("presage-model 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := r.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := r.Put(Manifest{}, learned(1e-5), time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestCards(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	if err := r.Attach("v1", "md", []byte("# v1\n")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "v1.md")); err != nil || string(b) != "# v1\n" {
		t.Errorf("%q, %v", b, err)
	}
	for _, kind := range []string{"model", "../x"} {
		if err := r.Attach("v1", kind, nil); err == nil {
			t.Errorf("attached %q", kind)
		}
	}
}

func FuzzUnseal(f *testing.F) {
	s, _ := learned(1e-5).Encode()
	file, err := seal(&Manifest{Name: "v1"}, s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte("presage-model 1 \n\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, model, err := unseal(data)
		if err != nil {
			return
		}
		if again, err := seal(m, model); err != nil || len(again) == 0 {
			t.Fatal(err)
		}
	})
}

// TestServingIsNoChampion: what a running service learns is kept, and cannot be promoted.
func TestServingIsNoChampion(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "models"))
	if put(t, r, Serving, 7e-5); !r.Has(Serving) || r.Has("v9") || r.Has("../models/serving") {
		t.Error("what is there and what is not is mixed up")
	}
	if err := r.Promote(Serving, now); err == nil || !strings.Contains(err.Error(), "cannot be champion") {
		t.Errorf("promoted: %v", err)
	}
	if _, err := r.Champion(); !errors.Is(err, ErrNone) {
		t.Errorf("champion: %v", err)
	}
}
