package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/router"
)

// policies stands for the registry of a binary.
func policies() []string {
	return []string{"adaptive", "argmin-ttft", "least-request", "llmd-sticky-token", "predictive", "round-robin", "weighted"}
}

const source = "fleet: {endpoints: {file: endpoints.yaml}}\n"

// TestFixtures reads testdata: good files must load with the warnings their first comments name,
// bad ones must fail with exactly the errors they name.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				comment, ok := strings.CutPrefix(line, "# ")
				if !ok {
					break
				}
				want = append(want, strings.TrimSuffix(comment, "\n"))
			}
			_, warnings, err := Parse(filepath.Base(path), data, policies())
			var got Problems
			switch {
			case strings.HasSuffix(path, ".good.yaml"):
				if err != nil {
					t.Fatal(err)
				}
				got = warnings
			case !errors.As(err, &got):
				t.Fatalf("%v is no Problems", err)
			}
			var lines []string
			for _, p := range got {
				lines = append(lines, p.String())
			}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreValid(t *testing.T) {
	got, warnings, err := Parse("c.yaml", []byte(source), policies())
	if err != nil || len(warnings) != 0 {
		t.Fatal(warnings, err)
	}
	want := Default()
	want.Fleet.File = "endpoints.yaml"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/full.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root, problems := parse("full.good.yaml", data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := decoder{policies: policies(), lines: map[string]int{}}
	c := Default()
	d.options = c.options()
	d.mapping("", root)
	for _, o := range d.options {
		if !d.given(o.key) && !strings.HasPrefix(o.key, "fleet.endpoints.dns") {
			t.Errorf("full.good.yaml does not show %s", o.key)
		}
	}
	got, _, err := Parse("full.good.yaml", data, policies())
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Listen: Listen{ExtProc: "127.0.0.1:9102", Admin: "0.0.0.0:9190"},
		TLS:    TLS{Mode: TLSFiles, Cert: "cert.pem", Key: "key.pem"},
		Fleet:  Fleet{File: "/etc/presage/endpoints.yaml", Scrape: Scrape{Interval: 500 * time.Millisecond, Timeout: 2 * time.Second}},
		Request: Request{
			MaxBody: 8 << 20, TotalBytes: 1e9, DecisionDeadline: 250 * time.Millisecond,
			UnknownModel: Unknown404, Rewrite: map[string]string{"*": "base", "alias": "org/base"},
		},
		Answer:     Answer{Endpoints: 3, DecisionHeader: true, ClearRouteCache: true},
		Priorities: map[string]int{"batch": -5, "chat": 10},
		Policy:     "mine",
		Profiles: map[string]router.ProfileSpec{
			"mine": {
				Filters: []router.FilterSpec{{Name: "stale"}, {Name: "queue", Max: ptr(64)}},
				Scorers: map[string]*float64{"kv": nil, "prefix": ptr(2.5), "queue": ptr(0)},
				Picker:  "epsilon-greedy", Epsilon: ptr(0.5), MaxAge: 2 * time.Second, Probe: -1,
			},
			"weighted": {Scorers: map[string]*float64{"queue": ptr(1)}},
		},
		SLO: SLO{ITL: 80 * time.Millisecond},
		Experiment: Experiment{
			Arms: []Arm{{"mine", 0.75}, {"round-robin", 0.25}}, Control: "round-robin", Unit: "block", Length: 4 * time.Minute, Washout: time.Minute,
			HoldBack: 0.1, Seed: 7, Explore: map[string]float64{"mine": 0.2}, Guardrails: map[string]float64{"slo": 0.1, "ttft_p90": 2},
		},
		Shadow: []string{"least-request"},
		Models: Models{Dir: "data/models"},
		Trace:  Trace{Dir: "data/trace", Keep: 24 * time.Hour, Budget: 1 << 30},
		Drain:  Drain{},
		Admin:  Admin{Token: "0123456789abcdef", Hosts: []string{"presage", "presage.default.svc"}},
		Log:    Log{Level: -4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestK17NumericOptions gives every option with a number in it the usual impossible values. None may
// be taken silently: each is refused with the line and the key.
func TestK17NumericOptions(t *testing.T) {
	bad := []string{"-1", "-5s", "-1MiB", "9223372036854775808", "99999999999999999999s", "9999999999GiB", "1e400", ".nan", "NaN", ".inf", "nan s", `"64"`, "true", "[1]", "{a: 1}", "~", "", "0x10", "1_000", "abc", "1h1", "1.5.2"}
	numeric := 0
	for _, o := range Default().options() {
		isCount := strings.HasPrefix(o.kind, "whole") || strings.HasPrefix(o.kind, "mapping of objective")
		if !isCount && !strings.HasPrefix(o.kind, "duration") && !strings.HasPrefix(o.kind, "size") {
			continue
		}
		numeric++
		for _, v := range append(bad, "0") {
			key := o.key
			if o.key == "priorities" {
				if v == "-1" || v == "0" {
					continue
				}
				key = "priorities.x"
			}
			_, _, err := Parse("c.yaml", []byte(nested(key, v)), policies())
			var ps Problems
			if !errors.As(err, &ps) {
				t.Errorf("%s: %s was accepted", key, v)
				continue
			}
			found := false
			for _, p := range ps {
				found = found || p.Key == key && p.Line > 0 && p.What != ""
			}
			if !found {
				t.Errorf("%s: %s: no problem names the key and line: %v", key, v, err)
			}
		}
	}
	if numeric < 10 {
		t.Fatalf("only %d numeric options", numeric)
	}
}

// nested writes a dotted key as YAML sections, with a source of endpoints unless that is the key.
func nested(key, value string) string {
	var b strings.Builder
	if !strings.HasPrefix(key, "fleet.") {
		b.WriteString(source)
	}
	parts := strings.Split(key, ".")
	for i, p := range parts {
		fmt.Fprintf(&b, "%s%s:", strings.Repeat("  ", i), p)
		if i < len(parts)-1 {
			b.WriteString("\n")
		}
	}
	return b.String() + " " + value + "\n"
}

// TestB40Weights: zero is not unset, the order of scorers does not matter, impossible weights are
// refused, huge ones too.
func TestB40Weights(t *testing.T) {
	read := func(scorers string) (map[string]*float64, Problems, error) {
		c, warnings, err := Parse("c.yaml", []byte(source+"profiles: {p: {scorers: "+scorers+"}}\n"), policies())
		if err != nil {
			return nil, warnings, err
		}
		return c.Profiles["p"].Scorers, warnings, nil
	}
	for _, c := range []struct {
		scorers string
		want    map[string]*float64
		warned  bool
	}{
		{"{kv: 0, prefix: 0, queue: 0}", map[string]*float64{"kv": ptr(0), "prefix": ptr(0), "queue": ptr(0)}, true},
		{"{queue: 0, prefix: 0, kv: 1}", map[string]*float64{"kv": ptr(1), "prefix": ptr(0), "queue": ptr(0)}, false},
		{"{prefix: , kv: 0, queue: 2}", map[string]*float64{"kv": ptr(0), "prefix": nil, "queue": ptr(2)}, false},
		{"{kv: 1e308, prefix: 1e308}", map[string]*float64{"kv": ptr(1e308), "prefix": ptr(1e308)}, false},
		{"{kv: 0.25}", map[string]*float64{"kv": ptr(0.25)}, false},
	} {
		got, warnings, err := read(c.scorers)
		if err != nil || (len(warnings) > 0) != c.warned {
			t.Errorf("%s: warnings %v, error %v", c.scorers, warnings, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.scorers, diff)
		}
	}
	for _, w := range []string{"-1", ".nan", "NaN", ".inf", "-.inf", "1e400", `"1"`, "true", "[1]", "x"} {
		if got, _, err := read("{kv: " + w + ", prefix: 1}"); err == nil {
			t.Errorf("weight %s was read as %v", w, got)
		}
	}
	for _, scorers := range []string{"{}", "", "[kv]", "{kv: 1, kv: 2}", "{nope: 1}"} {
		if got, _, err := read(scorers); err == nil {
			t.Errorf("scorers %s were read as %v", scorers, got)
		}
	}
}

// TestB39HostileFiles: files that are no configuration end quickly in one plain error.
func TestB39HostileFiles(t *testing.T) {
	for name, data := range map[string]string{
		"10 MB":            strings.Repeat("policy: weighted # padding\n", 400_000),
		"10 MB of comment": source + strings.Repeat("#", 10<<20),
		"alias bomb":       "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\npriorities: *d\n",
		"self alias":       "priorities: &a {x: *a}\n",
		"merge key":        "slo: &s {ttft: 1s}\n<<: *s\n",
		"tab":              "slo:\n\tttft: 1s\n",
		"deep brackets":    strings.Repeat("[", 60_000),
		"deep braces":      strings.Repeat("{a: ", 15_000),
		"deep dashes":      strings.Repeat("- ", 30_000) + "x",
		"deep keys":        strings.Repeat("? ", 30_000) + "x",
		"anchors":          strings.Repeat("&a ", 20_000),
		"tags":             strings.Repeat("!!a ", 16_000),
		"colons":           strings.Repeat(":", 60_000),
		"latin 1":          "policy: caf\xe9\n",
		"nul":              "policy: a\x00b\n",
		"binary":           "\x7fELF\x02\x01\x01\x00",
		"json array":       `[{"policy":"weighted"}]`,
		"two documents":    source + "---\n" + source,
		"text":             "hello\n",
		"tag":              source + "policy: !!str weighted\n",
		"open bracket":     "listen: {extproc: \":9002\"\n",
	} {
		c, _, err := Parse("c.yaml", []byte(data), policies())
		var ps Problems
		if !errors.As(err, &ps) || c != nil {
			t.Errorf("%s: %v, %v", name, c, err)
			continue
		}
		for _, p := range ps {
			if s := p.String(); len(s) > 400 || strings.ContainsAny(s, "\n\t\x00") {
				t.Errorf("%s: message %.500q", name, s)
			}
		}
	}
}

// TestB39Names: unknown, doubled and dangling names fail with the nearest known one.
func TestB39Names(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"polcy: weighted\n", "c.yaml:2: polcy: no such key; did you mean policy?"},
		{"policy: llmd-stiky-token\n", `c.yaml:2: policy: "llmd-stiky-token" unknown; nearest llmd-sticky-token, all: presage policies`},
		{"policy: weighted\npolicy: weighted\n", "c.yaml:3: policy: given twice, first on line 2; keep one"},
		{"policy: nope-at-all\n", `c.yaml:2: policy: "nope-at-all" unknown; all: presage policies`},
		{"slo:\n  ttft: 1\n", `c.yaml:3: slo.ttft: "1" has no unit; write 1s or 1000ms`},
		{"slo: {ttft: 1}\n", `c.yaml:2: slo.ttft: "1" has no unit; write 1s or 1000ms`},
		{"timeout: 3s\n", "c.yaml:2: timeout: no such key; did you mean fleet.scrape.timeout?"},
		{"profiles: {p: {scorers: {prefx: 1}}}\n", "c.yaml:2: profiles.p.scorers.prefx: no such scorer; did you mean prefix? one of prefix, lora, session, queue, running, requests, tokens, kv"},
		{"profiles: {round-robin: {scorers: {kv: 1}}}\n", "c.yaml:2: profiles.round-robin: the name of a built-in policy; choose another name"},
		{"profiles: {p: {scorers: {kv: 1}, picker: max, picker: max}}\n", "c.yaml:2: profiles.p.picker: given twice, first on line 2; keep one"},
	} {
		_, _, err := Parse("c.yaml", []byte(source+c.data), policies())
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.data, err, c.want)
		}
	}
}

func ptr(v float64) *float64 { return &v }

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "presage.yaml")
	if _, _, err := Load(path, policies()); err == nil || !strings.HasSuffix(err.Error(), "presage.yaml: cannot be read: no such file or directory; give an existing file") {
		t.Error(err)
	}
	if _, _, err := Load(dir, policies()); err == nil {
		t.Error("a folder was read")
	}
	if err := os.WriteFile(path, []byte(source+"tls: {mode: files, cert: c.pem, key: /k.pem}\r\nmodels: {dir: m}\ntrace: {dir: t}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(path, policies())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Fleet.File, c.TLS.Cert, c.TLS.Key, c.Models.Dir, c.Trace.Dir}
	if diff := cmp.Diff([]string{filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "c.pem"), "/k.pem", filepath.Join(dir, "m"), filepath.Join(dir, "t")}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMeant(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"polcy", "policy"}, {"POLICY", "policy"}, {"polciy", "policy"}, {"xyzzyx", ""}, {"", ""}, {strings.Repeat("p", 1000), ""},
	} {
		if got := meant(c.name, []string{"listen", "policy", "profiles"}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
