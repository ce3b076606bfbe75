package discover

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

// render writes an endpoint as the comments of the good files do.
func render(e *fleet.Endpoint) string {
	s := fmt.Sprintf("%s %s", e.Name, e.Addr)
	for _, f := range [][2]string{{"model", e.Model}, {"engine", e.Engine}, {"gpu", e.GPU}} {
		if f[1] != "" {
			s += " " + f[0] + "=" + f[1]
		}
	}
	s += fmt.Sprintf(" tp=%d %s", e.TP, e.Role)
	if len(e.Adapters) > 0 {
		s += " adapters=" + strings.Join(e.Adapters, ",")
	}
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		labels = append(labels, k+":"+e.Labels[k])
	}
	if len(labels) > 0 {
		s += " labels=" + strings.Join(labels, ",")
	}
	if e.Drain {
		s += " drain"
	}
	if e.Metrics != "" {
		s += " metrics=" + e.Metrics
	}
	return s
}

func rendered(set []*fleet.Endpoint) (lines []string) {
	for _, e := range set {
		lines = append(lines, render(e))
	}
	return lines
}

// TestGoodFiles: the comments that start with #= are the endpoints of the file.
func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(string(data)) {
			if w, ok := strings.CutPrefix(line, "#= "); ok {
				want = append(want, strings.TrimSpace(w))
			}
		}
		for name, data := range map[string]string{"LF": string(data), "CRLF": strings.ReplaceAll(string(data), "\n", "\r\n"), "BOM": "\ufeff" + string(data)} {
			got, err := Parse("F", []byte(data))
			if err != nil {
				t.Errorf("%s %s: %v", f, name, err)
				continue
			}
			if diff := cmp.Diff(want, rendered(got)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", f, name, diff)
			}
			var fl fleet.Fleet
			if _, err := fl.Sync(time.Now(), got); err != nil {
				t.Errorf("%s %s: the fleet refuses it: %v", f, name, err)
			}
		}
	}
}

// TestBadFiles: the first comments are the errors of the file, all of them in order, F being its name.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(string(data)) {
			w, ok := strings.CutPrefix(line, "# ")
			if !ok {
				break
			}
			want = append(want, strings.TrimSpace(w))
		}
		set, err := Parse("F", data)
		if err == nil {
			t.Errorf("%s: accepted as %v", f, rendered(set))
			continue
		}
		got := strings.Split(err.Error(), "\n")
		if strings.HasSuffix(f, "syntax.bad.yaml") { // the parser's own words follow
			got[0] = got[0][:min(len(got[0]), len(want[0]))]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

// TestOrigin: an endpoint remembers where it was described.
func TestOrigin(t *testing.T) {
	set, err := Load("testdata/block.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range set {
		got = append(got, e.Origin)
	}
	want := []string{"testdata/block.good.yaml:8", "testdata/block.good.yaml:8", "testdata/block.good.yaml:25", "testdata/block.good.yaml:26"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHostileFiles: whatever the file, the answer comes soon, is an error and is short.
func TestHostileFiles(t *testing.T) {
	repeat := strings.Repeat
	for name, data := range map[string]string{
		"10 MB":     "endpoints:\n" + repeat("- {name: a, address: 10.0.0.1, ports: [8000]}\n", 10<<20/47),
		"brackets":  "endpoints: " + repeat("[", 50_000),
		"braces":    "endpoints: " + repeat("{a: ", 20_000),
		"dashes":    repeat("- ", 50_000),
		"questions": repeat("? ", 50_000),
		"stairs": func() (s string) {
			for i := range 1000 {
				s += repeat(" ", i) + "a:\n"
			}
			return s
		}(),
		"dash stairs": func() (s string) {
			for i := range 1000 {
				s += repeat(" ", i) + "-\n"
			}
			return s
		}(),
		"colons":        repeat(":", 100_000),
		"open quote":    "endpoints: \"" + repeat("a", 100_000),
		"NUL":           "endpoints: []\x00",
		"UTF-16":        "\xff\xfee\x00n\x00",
		"same name":     "endpoints:\n" + repeat("- {name: a, address: 10.0.0.1, ports: [8000]}\n", 1000),
		"long name":     "endpoints:\n- {name: " + repeat("a", 10_000) + ", address: 10.0.0.1, ports: [8000]}\n",
		"long key":      repeat("k", 10_000) + ": 1\n",
		"control":       "endpoints: \x1b[31m\n",
		"escape":        "endpoints:\n- {name: \"a\\nb\", address: 10.0.0.1, ports: [8000]}\n",
		"evil metrics":  "endpoints:\n- {name: a, address: 10.0.0.1, ports: [8000], metrics: \"/m HTTP/1.1\\r\\nX: y\"}\n",
		"many ports":    "endpoints:\n- {name: a, address: 10.0.0.1, ports: [" + repeat("8000, ", 10_000) + "1]}\n",
		"other form":    "[]",
		"scalar":        "endpoints",
		"null":          "endpoints:",
		"numbers":       "endpoints: 7",
		"integer key":   "1: 2\n",
		"merge":         "endpoints:\n- <<: {name: a}\n",
		"complex key":   "? [a]\n: b\n",
		"block literal": "endpoints: |\n  - a\n",
	} {
		set, err := Parse("F", []byte(data))
		if err == nil {
			t.Errorf("%s: accepted as %d endpoints", name, len(set))
			continue
		}
		if s := err.Error(); len(s) > 8000 || strings.Count(s, "\n") > maxFaults || strings.ContainsAny(s, "\x00\x1b\r") {
			t.Errorf("%s: %d bytes of message: %.300q", name, len(s), s)
		}
	}
}

func TestNearest(t *testing.T) {
	for in, want := range map[string]string{"naem": "name", "Ports": "ports", "addrss": "address", "lables": "labels", "x": "", "colour": "", "metric": "metrics", "": ""} {
		if got := nearest(in, keys); got != want {
			t.Errorf("nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzParse: any bytes give a set the fleet accepts, or an error that names the file.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Parse("F", data)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "F:") {
					t.Fatalf("message does not name the file: %q", err)
				}
			}
			if set != nil {
				t.Fatal("a set beside an error")
			}
			return
		}
		var fl fleet.Fleet
		if _, err := fl.Sync(time.Now(), set); err != nil {
			t.Fatalf("the fleet refuses it: %v", err)
		}
		again, err := Parse("F", data)
		if diff := cmp.Diff(rendered(set), rendered(again)); err != nil || diff != "" {
			t.Fatalf("read twice: %v\n%s", err, diff)
		}
	})
}
