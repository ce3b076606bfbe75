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

	"github.com/presage-router/presage/datasets"
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

func parseTraffic(v *node, s *Scenario, slo request.SLO) *Traffic {
	if !v.mapping() {
		return nil
	}
	t := &Traffic{
		Class: v.need("class").text(), Model: v.key("model").text(),
		From: v.key("from").duration(), Until: v.key("until").duration(),
		SLO: parseSLO(v.key("slo"), slo), Priority: int(v.key("priority").number(-1000, 1000)),
		MaxTokens: v.key("max_tokens").count(1, maxTokens), Timeout: v.key("timeout").duration(), Users: v.key("users").count(1, maxCount),
	}
	if slices.ContainsFunc(s.Traffic, func(o Traffic) bool { return o.Class == t.Class }) {
		v.key("class").fail("%q is there twice", t.Class)
	}
	if v.has("class") && !nameForm.MatchString(t.Class) {
		v.key("class").fail("%q is not a name of lower-case letters, digits and hyphens", t.Class)
	}
	until := t.Until
	if until == 0 {
		until = s.Duration
	}
	if until > s.Duration || t.From >= until && s.Duration > 0 {
		v.fail("its time from %s until %s is not within the scenario's %s", t.From, until, s.Duration)
	}
	if tr := v.key("trace"); tr.there() {
		t.Trace = parseTrace(tr)
		for _, name := range []string{"arrivals", "prompt", "output", "prefix", "session", "users", "adapters", "cancel"} {
			if v.has(name) {
				v.key(name).fail("does not go with trace, which brings its own")
			}
		}
		v.end()
		return t
	}
	t.parseRequests(v)
	v.end()
	return t
}

// parseRequests reads what generated traffic needs.
func (t *Traffic) parseRequests(v *node) {
	t.Prompt, t.Output = parseDist(v.need("prompt"), 1, maxTokens), parseDist(v.need("output"), 1, maxTokens)
	if v.has("prompt") && t.Prompt.IsZero() {
		t.Prompt = Dist{Kind: "fixed", A: 1}
	}
	if v.has("output") && t.Output.IsZero() {
		t.Output = Dist{Kind: "fixed", A: 1}
	}
	for _, e := range v.key("prefix").list() {
		if !e.mapping() {
			continue
		}
		p := Prefix{
			Groups: 1, Tokens: parseDist(e.need("tokens"), 1, maxTokens), Pick: parsePick(e.key("pick")),
			Renew: e.key("renew").duration(), Tenants: e.key("tenants").flag(),
		}
		if c := e.key("groups"); c.there() {
			p.Groups = max(1, c.count(1, maxCount))
		}
		if c := e.key("renew"); c.there() && p.Renew < time.Millisecond {
			c.fail("%s is shorter than 1ms", p.Renew)
		}
		e.end()
		t.Prefix = append(t.Prefix, p)
	}
	if len(t.Prefix) > maxLevels {
		v.key("prefix").fail("%d levels; at most %d", len(t.Prefix), maxLevels)
	}
	if c := v.key("adapters"); c.mapping() {
		t.Adapters, t.AdapterPick = c.need("count").count(1, 1<<16), parsePick(c.key("pick"))
		c.end()
	}
	if c := v.key("cancel"); c.mapping() {
		t.CancelShare, t.CancelTokens = c.need("share").number(0, 1), parseDist(c.need("after"), 1, maxTokens)
		c.end()
	}
	if c := v.key("session"); c.mapping() {
		t.Session = &Session{
			Turns: parseDist(c.need("turns"), 1, 1e6), Think: parseDist(c.need("think"), 0, 1e6),
			Next: parseDist(c.need("next"), 1, maxTokens), Limit: c.key("limit").count(1, maxTokens),
		}
		c.end()
		if t.Users > 0 {
			v.key("users").fail("does not go with session: each conversation has a session id of its own")
		}
	}
	t.parseArrivals(v.need("arrivals"))
}

func (t *Traffic) parseArrivals(v *node) {
	list := v.list()
	if v.there() && len(list) == 0 {
		v.fail("names no arrival process")
	}
	for _, e := range list {
		kind, c := e.only("poisson", "gamma", "square", "spikes", "burst", "closed")
		if c == nil || !c.mapping() {
			continue
		}
		a := Arrivals{Kind: kind}
		switch kind {
		case "poisson":
			a.Rate = c.rate("rate")
		case "gamma":
			a.Rate, a.CV = c.rate("rate"), c.need("cv").number(.05, 20)
		case "square":
			a.Rate, a.High, a.Every, a.Length = c.rate("low"), c.rate("high"), c.period("every"), c.period("high_for")
			if a.Length > a.Every {
				c.key("high_for").fail("%s is longer than every %s", a.Length, a.Every)
			}
		case "spikes":
			a.Rate, a.Every, a.Length, a.First = c.rate("rate"), c.period("every"), c.period("length"), c.key("first").duration()
			if a.Length > a.Every {
				c.key("length").fail("%s is longer than every %s", a.Length, a.Every)
			}
		case "burst":
			a.Count, a.Every, a.Length, a.First = c.need("count").count(1, maxCount), c.period("every"), c.period("within"), c.key("first").duration()
		case "closed":
			a.Count, a.Ramp, a.Think = c.need("users").count(0, maxCount), c.key("ramp").duration(), parseDist(c.key("think"), 0, 1e6)
			for _, st := range c.key("steps").list() {
				if st.mapping() {
					a.Steps = append(a.Steps, Step{At: st.need("at").duration(), Users: st.need("users").count(1, maxCount)})
					st.end()
				}
			}
			if slices.ContainsFunc(t.Prefix, func(p Prefix) bool { return p.Renew > 0 }) {
				e.fail("does not go with a prefix that is renewed: closed-loop users have no clock")
			}
		}
		c.end()
		t.Arrivals = append(t.Arrivals, a)
	}
}

func (v *node) rate(name string) float64 {
	c := v.need(name)
	if !c.there() {
		return 1
	}
	return max(1e-6, c.number(1e-6, maxRate))
}

func (v *node) period(name string) time.Duration {
	c := v.need(name)
	d := c.duration()
	if c.there() && d < time.Millisecond {
		c.fail("%s is shorter than 1ms", d)
	}
	return max(d, time.Millisecond)
}

func parseTrace(v *node) *Trace {
	if !v.mapping() {
		return nil
	}
	t := &Trace{
		File: v.key("file").text(), Format: datasets.Format(v.key("format").text()), Where: v.key("where").text(),
		Speed: v.key("speed").number(1e-6, 1e6), Rate: v.key("rate").number(1e-6, maxRate),
		From: v.key("start").duration(), Length: v.key("length").duration(), Run: v.key("run").text(),
		Copies: v.key("copies").count(1, 10000), Waits: v.key("waits").flag(), Output: parseDist(v.key("output"), 1, maxTokens),
	}
	if t.Speed > 0 && t.Rate > 0 {
		v.fail("has both speed and rate; give one")
	}
	if f := v.key("format"); f.there() && !slices.Contains(replayable(), t.Format) {
		names := make([]string, 0, 16)
		for _, f := range replayable() {
			names = append(names, string(f))
		}
		f.fail("%q cannot be replayed; %s", t.Format, suggest(string(t.Format), names))
	}
	v.end()
	return t
}

// replayable are the formats that hold arrivals.
func replayable() []datasets.Format {
	return []datasets.Format{
		datasets.Azure, datasets.Mooncake, datasets.BurstGPT, datasets.ServeGenRates, datasets.Agentic, datasets.EPP, datasets.LMBench,
		datasets.VLLMBench, datasets.InferencePerf, datasets.GuideLLM, datasets.OTLP, datasets.AccessLog, datasets.Measured, datasets.VLLMCPU,
	}
}
