package discover

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

// list is a file with endpoints of these names, each at an address of its own.
func listOf(names ...string) string {
	s := "endpoints:\n"
	for _, n := range names {
		s += fmt.Sprintf("- {name: %s, address: 10.0.0.%d, ports: [8000]}\n", n, n[0]-'a'+1)
	}
	return s + "# end of the list\n"
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace is how a careful writer, or a file synchroniser, changes a file.
func replace(t testing.TB, path, data string) {
	t.Helper()
	write(t, path+".tmp", data)
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func names(set []*fleet.Endpoint) string {
	var n []string
	for _, e := range set {
		n = append(n, e.Name)
	}
	return strings.Join(n, " ")
}

// TestWatch drives one watch through what happens to files, look by look.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	w := watch{path: path}
	now := time.Now().Add(time.Hour) // long after any time stamp: nothing is read again for being new
	look := func() (Update, bool) { return w.look(now) }
	quiet := func(what string) {
		t.Helper()
		if u, news := look(); news {
			t.Fatalf("%s: news %v %v", what, names(u.Endpoints), u.Err)
		}
	}
	set := func(what, want string) {
		t.Helper()
		if u, news := look(); !news || u.Err != nil || names(u.Endpoints) != want {
			t.Fatalf("%s: news %v: %q %v, want %q", what, news, names(u.Endpoints), u.Err, want)
		}
		quiet(what + ", again")
	}
	fails := func(what, want string) {
		t.Helper()
		if u, news := look(); !news || u.Err == nil || !strings.Contains(u.Err.Error(), want) || u.Endpoints != nil {
			t.Fatalf("%s: news %v: %v %v, want error %q", what, news, names(u.Endpoints), u.Err, want)
		}
		quiet(what + ", again")
	}
	fails("no file yet", "endpoints.yaml: cannot be read: no such file or directory; give a readable file")
	write(t, path, listOf("a", "b"))
	set("created", "a b")
	replace(t, path, listOf("a", "b", "c"))
	quiet("renamed onto, first look")
	set("renamed onto", "a b c")
	write(t, path, "endpoints:\n- {nam")
	quiet("half written")
	write(t, path, listOf("a"))
	quiet("still moving")
	set("written in place", "a")
	touched := now.Add(-time.Minute)
	if err := os.Chtimes(path, touched, touched); err != nil {
		t.Fatal(err)
	}
	quiet("touched")
	quiet("touched, settled")
	replace(t, path, "endpoints: [")
	quiet("broken, first look")
	fails("broken", "endpoints.yaml:1: not YAML")
	replace(t, path, listOf("a"))
	quiet("repaired, first look")
	set("repaired with what it was before", "a")
	replace(t, path, "")
	quiet("emptied, first look")
	fails("emptied", "nothing where the key endpoints is expected")
	replace(t, path, "endpoints: []\n")
	quiet("no endpoints, first look")
	set("no endpoints, on purpose", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fails("removed", "no such file")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	quiet("a folder, first look")
	fails("a folder", "is a directory")
	os.Remove(path)
	fails("removed again", "no such file")
	write(t, path, listOf("b"))
	quiet("back, first look")
	set("back", "b")
	for i := range maxSettle + 1 { // a file that never stands still
		write(t, path, listOf("b", "c")+strings.Repeat("#\n", i))
		if u, news := look(); news {
			if i < maxSettle || names(u.Endpoints) != "b c" {
				t.Fatalf("look %d: %v", i, names(u.Endpoints))
			}
			return
		}
	}
	t.Fatal("a file that never stands still is never read")
}

// TestWatchSameStamp: an edit of equal length within the resolution of the time stamp is seen.
func TestWatchSameStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	w := watch{path: path}
	stamp := time.Now()
	for _, name := range []string{"a", "b", "c"} {
		write(t, path, listOf(name))
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if u, _ := w.look(stamp); names(u.Endpoints) != name {
			t.Fatalf("file with %s: news %v", name, names(u.Endpoints))
		}
	}
}

// TestConfigMapSwap: a mounted ConfigMap changes by a swap of the symbolic link ..data.
func TestConfigMapSwap(t *testing.T) {
	dir := t.TempDir()
	version := func(i int, data string) {
		t.Helper()
		v := filepath.Join(dir, fmt.Sprintf("..v%d", i))
		if err := os.Mkdir(v, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(v, "endpoints.yaml"), data)
		tmp := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(filepath.Base(v), tmp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", i-1)))
	}
	version(1, listOf("a"))
	path := filepath.Join(dir, "endpoints.yaml")
	if err := os.Symlink(filepath.Join("..data", "endpoints.yaml"), path); err != nil {
		t.Fatal(err)
	}
	w := watch{path: path}
	now := time.Now().Add(time.Hour)
	if u, _ := w.look(now); names(u.Endpoints) != "a" {
		t.Fatalf("first version: %v %v", names(u.Endpoints), u.Err)
	}
	version(2, listOf("b"))
	w.look(now)
	if u, _ := w.look(now); names(u.Endpoints) != "b" {
		t.Fatalf("second version: %v %v", names(u.Endpoints), u.Err)
	}
}

// following runs a source into a fleet under a fake clock.
type following struct {
	fleet fleet.Fleet

	mu      sync.Mutex
	reports []string
}

// log is what was reported so far.
func (f *following) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

func follow(t *testing.T, s Source, test func(*following)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &following{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Follow(ctx, &f.fleet, s, func(c fleet.Change, err error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if err != nil {
					f.reports = append(f.reports, err.Error())
				} else {
					f.reports = append(f.reports, fmt.Sprintf("+%d -%d ~%d", len(c.Added), len(c.Removed), len(c.Updated)))
				}
			})
		}()
		synctest.Wait()
		test(f)
		cancel()
		<-ended
	})
}

// pass lets time pass and returns the names of the fleet.
func (f *following) pass(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	var snap fleet.Snapshot
	f.fleet.Snapshot(time.Now(), &snap)
	var n []string
	for _, s := range snap.States {
		name := s.Name
		if s.Drain {
			name += "!"
		}
		n = append(n, name)
	}
	return strings.Join(n, " ")
}

// TestB41File: the fleet follows the file, as the pool's specification and its pods change.
func TestB41File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	follow(t, &File{Path: path}, func(f *following) {
		for i, step := range []struct{ file, want, log string }{
			{"", "", path + ": cannot be read: no such file or directory; give a readable file (endpoints in force meanwhile: 0)"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [8000, 8001]}\n", "p1:8000 p1:8001", "+2 -0 ~0"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [8000, 8001]}\n- {name: p2, address: 10.0.0.2, ports: [8000, 8001], drain: true}\n", "p1:8000 p1:8001 p2:8000! p2:8001!", "+2 -0 ~0"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [8000, 8001]}\n- {name: p2, address: 10.0.0.2, ports: [8000, 8001]}\n", "p1:8000 p1:8001 p2:8000 p2:8001", "+0 -0 ~2"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [8000]}\n- {name: p2, address: 10.0.0.2, ports: [8000]}\n", "p1 p2", "+2 -4 ~0"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [8000}\n", "p1 p2", ""},
			{"endpoints: []\n", "", "+0 -2 ~0"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [9000]}\n- {name: p6, address: \"fd00::1\", ports: [9000]}\n", "p1 p6", "+2 -0 ~0"},
			{"-", "p1 p6", path + ": cannot be read: no such file or directory; give a readable file (endpoints in force meanwhile: 2)"},
			{"endpoints:\n- {name: p1, address: 10.0.0.1, ports: [9000]}\n- {name: p6, address: \"fd00::1\", ports: [9000]}\n", "p1 p6", "+0 -0 ~0"},
		} {
			switch step.file {
			case "":
			case "-":
				os.Remove(path)
			default:
				replace(t, path, step.file)
			}
			if got := f.pass(2 * DefaultEvery); got != step.want {
				t.Fatalf("step %d: fleet %q, want %q\n%s", i, got, step.want, strings.Join(f.log(), "\n"))
			}
			if log := f.log(); len(log) != i+1 || step.log != "" && log[i] != step.log {
				t.Errorf("step %d: log %q", i, log)
			}
		}
	})
}

// TestFileConverges: whatever happened to a file before, in the end the fleet is that of a fresh start.
func TestFileConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "discover")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "endpoints.yaml")
		contents := []string{listOf("a"), listOf("a", "b"), listOf("c", "a"), "endpoints: []\n", "endpoints: [", "", "-"}
		now := time.Now().Add(time.Hour)
		w := watch{path: path}
		var inForce []*fleet.Endpoint
		look := func() {
			if u, news := w.look(now); news && u.Err == nil {
				inForce = u.Endpoints
			}
		}
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			switch c := rapid.SampledFrom(contents).Draw(rt, "content"); {
			case c == "-":
				os.Remove(path)
			case rapid.Bool().Draw(rt, "rename"):
				replace(t, path, c)
			default:
				write(t, path, c)
			}
			for range rapid.IntRange(0, 3).Draw(rt, "looks") {
				look()
			}
		}
		last := rapid.SampledFrom(contents[:4]).Draw(rt, "last")
		replace(t, path, last)
		look()
		look()
		fresh, err := Load(path)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(rendered(fresh), rendered(inForce)); diff != "" {
			rt.Fatalf("(-fresh start +after events)\n%s", diff)
		}
	})
}
