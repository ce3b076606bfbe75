package workload

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// Bounds of what a scenario may ask for: beyond them a figure is taken for a slip.
const (
	maxTokens = 10e6
	maxRate   = 1e6
	maxCount  = 1_000_000
	maxFleet  = 4096
	maxFile   = 64 << 10
)

// Load reads a scenario file. Paths of traces in it are relative to its folder.
func Load(path string) (*Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	for i := range s.Traffic {
		if t := s.Traffic[i].Trace; t != nil && t.File != "" && !filepath.IsAbs(t.File) {
			t.File = filepath.Join(filepath.Dir(path), t.File)
		}
	}
	return s, nil
}

// readFile reads no more than a scenario can be long.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }() // read only
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return data, nil
}

// unreadable is the system's reason without the path, which the fault names already.
func unreadable(path string, err error) error {
	f := &Fault{File: path, Reason: err.Error(), Cause: err}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		f.Reason = pe.Err.Error()
	}
	return f
}

// Parse reads a scenario; file stands for it in messages. The error joins one [Fault] for everything
// that is wrong.
func Parse(file string, data []byte) (*Scenario, error) {
	doc := &document{file: file}
	if err := doc.plausible(data); err != nil {
		return nil, err
	}
	root, err := doc.parseYAML(data)
	if err != nil {
		return nil, err
	}
	s := parseScenario(root)
	if err := doc.faulty(); err != nil {
		return nil, err
	}
	return s, nil
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func parseScenario(v *node) *Scenario {
	if !v.mapping() {
		return nil
	}
	s := &Scenario{
		Name: v.need("name").text(), About: v.need("about").text(), Expects: v.need("expects").text(), Origin: v.key("origin").text(),
		Duration: v.need("duration").duration(), Warmup: v.key("warmup").duration(),
	}
	if !nameForm.MatchString(s.Name) && v.has("name") {
		v.key("name").fail("%q is not a name of lower-case letters, digits and hyphens", s.Name)
	}
	if s.Duration < time.Second && v.has("duration") {
		v.key("duration").fail("%s is shorter than 1s", s.Duration)
	}
	if s.Warmup >= s.Duration && v.has("warmup") && s.Duration > 0 {
		v.key("warmup").fail("%s leaves nothing of the %s to count", s.Warmup, s.Duration)
	}
	s.Loads = parseLoads(v.key("loads"))
	s.Fleet = parseFleet(v.need("fleet"))
	slo := parseSLO(v.key("slo"), request.SLO{})
	for _, e := range v.need("traffic").list() {
		if t := parseTraffic(e, s, slo); t != nil {
			s.Traffic = append(s.Traffic, *t)
		}
	}
	if v.has("traffic") && len(s.Traffic) == 0 {
		v.key("traffic").fail("names no traffic")
	}
	for _, e := range v.key("events").list() {
		if ev := parseEvent(e, s); ev != nil {
			s.Events = append(s.Events, *ev)
		}
	}
	slices.SortStableFunc(s.Events, func(a, b cluster.Event) int { return cmp.Compare(a.At, b.At) })
	v.end()
	return s
}

func parseLoads(v *node) []float64 {
	if !v.there() {
		return []float64{.3, .6, .8, .95, 1.1}
	}
	var loads []float64
	for _, e := range v.list() {
		x := e.number(.001, maxLoad)
		if len(loads) > 0 && x <= loads[len(loads)-1] {
			e.fail("%v does not rise", x)
		}
		loads = append(loads, x)
	}
	return loads
}

func parseFleet(v *node) []Engines {
	table, err := engine.Builtin()
	if err != nil {
		v.fail("%v", err)
		return nil
	}
	var fleet []Engines
	total := 0
	for _, e := range v.list() {
		if !e.mapping() {
			continue
		}
		g := Engines{
			Count: 1, GPU: e.need("gpu").text(), Model: e.need("model").text(), TP: e.key("tp").count(1, 64), DType: e.key("dtype").text(),
			Profile: e.key("profile").choice("async", "sync"), MaxSeqs: e.key("max_num_seqs").count(1, 1<<16),
			MaxBatched: e.key("max_num_batched_tokens").count(1, 1<<24), Blocks: e.key("kv_blocks").count(2, 1<<24),
			MaxLoRA: e.key("max_loras").count(0, 4096), Slowdown: e.key("slowdown").number(.01, 1000),
		}
		if c := e.key("count"); c.there() {
			g.Count = c.count(1, maxFleet)
		}
		e.end()
		if e.has("gpu") && e.has("model") {
			if _, err := g.Config(table); err != nil {
				e.fail("%v", err)
			}
		}
		fleet, total = append(fleet, g), total+g.Count
	}
	if v.there() && (total == 0 || total > maxFleet) {
		v.fail("%d engines; want 1 to %d", total, maxFleet)
	}
	return fleet
}

func parseSLO(v *node, inherit request.SLO) request.SLO {
	if !v.mapping() {
		return inherit
	}
	slo := request.SLO{}
	for name, field := range map[string]*time.Duration{"ttft": &slo.TTFT, "itl": &slo.ITL, "e2e": &slo.E2E} {
		c := v.key(name)
		*field = c.duration()
		if c.there() && (*field < time.Millisecond || *field > time.Hour) {
			c.fail("%s is not within 1ms and 1h", *field)
		}
	}
	v.end()
	return slo
}
