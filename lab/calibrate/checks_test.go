package calibrate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
)

// TestChecks runs the checks that take little time on the reference data.
func TestChecks(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	v := &validation{dir: dataDir(t), table: table}
	for _, run := range []func(context.Context) error{v.silicon, v.cold, v.capacity, v.servingsim} {
		if err := run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(v.report.Checks); n != 4+1+3+8 {
		t.Errorf("%d checks", n)
	}
	for _, c := range v.report.Checks {
		if !c.OK || c.Rows == 0 || c.Fitted == "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestValidateMissingFile(t *testing.T) {
	_, err := Validate(context.Background(), t.TempDir(), Options{Quick: true})
	if err == nil || !strings.Contains(err.Error(), "passes.csv.gz") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestJudged(t *testing.T) {
	for _, c := range []struct {
		err, limit float64
		ok         bool
	}{{0.05, 0.05, true}, {0.051, 0.05, false}, {9, 0, true}, {math.NaN(), 0, false}, {math.Inf(1), 0.1, false}} {
		got := judged(Check{Error: c.err, Limit: c.limit})
		if got.OK != c.ok || math.IsNaN(got.Error) || math.IsInf(got.Error, 0) {
			t.Errorf("error %v, limit %v: %+v", c.err, c.limit, got)
		}
	}
}

// TestStages finds the stages of a sweep: one by one, a burst, two constant rates with a failed
// request in the second.
func TestStages(t *testing.T) {
	var rows []datasets.Row
	at := 0.0
	add := func(gap float64, inflight int) {
		at += gap
		rows = append(rows, datasets.Row{Arrival: at, State: datasets.State{Inflight: inflight}})
	}
	for i := range 10 {
		add(2+float64(i%3), 0)
	}
	add(3, 0)
	for i := range 9 {
		add(0.01, i+1)
	}
	add(30, 0)
	for range 9 {
		add(1, 1)
	}
	add(4, 0)
	for i := range 9 {
		add(0.5*float64(1+i/8), 2)
	}
	if got, want := stages(rows), []int{0, 10, 20, 30}; !slices.Equal(got, want) {
		t.Errorf("stages begin at %v, want %v", got, want)
	}
	if got := stages(rows[:2]); !slices.Equal(got, []int{0}) {
		t.Errorf("stages of two requests begin at %v", got)
	}
}

// TestStickyMap: a session stays, sessions spread, and other seeds are other maps.
func TestStickyMap(t *testing.T) {
	counts, moved := map[int]int{}, 0
	for i := range 800 {
		session := string(rune('a'+i%26)) + string(rune('a'+i/26))
		n := (&stickyMap{seed: 1}).engine(session, 8)
		if n != (&stickyMap{seed: 1}).engine(session, 8) {
			t.Fatal("a session moved")
		}
		if n != (&stickyMap{seed: 2}).engine(session, 8) {
			moved++
		}
		counts[n]++
	}
	for n := range 8 {
		if counts[n] < 60 || counts[n] > 140 {
			t.Errorf("engine %d has %d of 800 sessions", n, counts[n])
		}
	}
	if moved < 600 {
		t.Errorf("another seed moves %d of 800 sessions", moved)
	}
}

func TestCrossing(t *testing.T) {
	curve := func(at float64) []Chat {
		var c []Chat
		for _, rate := range []float64{0.5, 1.3, 1.7, 2.5, 2.9, 3.7} {
			s := 1.0
			if rate >= at {
				s = 3
			}
			c = append(c, Chat{Rate: rate, Sticky: s, Random: 2})
		}
		return c
	}
	for at, ok := range map[float64]bool{1.3: false, 1.7: true, 2.9: true, 3.7: false, 9: false} {
		if c := judged(crossing(curve(at), 1)); c.OK != ok {
			t.Errorf("advantage lost at %v: %+v", at, c)
		}
	}
}

// TestOrders: the scenarios that come with the package are complete.
func TestOrders(t *testing.T) {
	entries, err := orders.ReadDir("orders")
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := orders.ReadFile("orders/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := workload.Parse(e.Name(), data)
		if err != nil {
			t.Fatal(err)
		}
		if s.Warmup <= 0 || s.Warmup >= s.Duration || s.Expects == "" {
			t.Errorf("%s: warm-up %v of %v", e.Name(), s.Warmup, s.Duration)
		}
	}
}

// TestContest: a small contest counts requests under every policy, and equal seeds give equal figures.
func TestContest(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	s, err := workload.Parse("small.yaml", []byte(`
name: small
about: two engines
origin: a test
expects: nothing
duration: 20s
warmup: 2s
fleet: [{count: 2, gpu: H100, model: llama-3.1-8b, tp: 1}]
traffic: [{class: chat, arrivals: [{poisson: {rate: 5}}], prefix: [{groups: 3, tokens: 500}], prompt: 100, output: 50}]
`))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"3-2-2", "1-1-1", "load", "random", "3-2-2"}
	o, err := contest(context.Background(), table, s, names...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o {
		if o[i].Requests < 200 || !(o[i].TokensPerSecond > 0) || !(o[i].E2E50 > 0) {
			t.Errorf("%s: %+v", names[i], o[i])
		}
	}
	if o[0] != o[4] {
		t.Errorf("%+v, then %+v", o[0], o[4])
	}
	if _, err := contest(context.Background(), table, s, "no such policy"); err == nil {
		t.Error("an unknown policy is accepted")
	}
}

// TestCalibrateFiles: results from good files, errors that say what to do from others.
func TestCalibrateFiles(t *testing.T) {
	const header = "run,model,hardware,replicas,stack,offered_qps,req_id,session_id,turn,arrival_s,prompt_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,queue_ms,inflight,inflight_prefill,status\n"
	row := func(run, replicas, arrival, prompt, output string) string {
		return run + ",m,X," + replicas + ",s,1,r,,," + arrival + "," + prompt + "," + output + ",50,10,140,,0,0,ok\n"
	}
	for name, c := range map[string]struct{ content, run, want string }{
		"few":      {header + row("a", "1", "0", "100", "10"), "", "few.csv: 0 requests with TTFT, 0 with a time between tokens: too few to fit; at least 20 are needed"},
		"runs":     {header + row("a", "1", "0", "100", "10") + row("b", "1", "0", "100", "10"), "", "runs.csv: 2 runs, an engine is fitted to one; name it with --run: a, b"},
		"norun":    {header + row("a", "1", "0", "100", "10"), "c", `norun.csv: no run "c"; there are a`},
		"replicas": {header + row("a", "8", "0", "100", "10"), "", "replicas.csv: 8 replicas, and the file does not say which one served a request"},
		"arrival":  {header + row("a", "1", "", "100", "10"), "", "arrival.csv: line 2: arrival: missing"},
		"prompt":   {header + row("a", "1", "0", "999999999", "10"), "", "prompt.csv: line 2: prompt tokens: missing or impossible"},
		"azure":    {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,4808,10\n", "", "azure.csv: format azure: has no steps or requests with latencies"},
		"text":     {"hello\n", "", "text.csv"},
		"empty":    {"", "", "empty.csv"},
	} {
		path := filepath.Join(t.TempDir(), name+".csv")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Calibrate(context.Background(), path, Setup{Run: c.run})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestCalibrateVLLMCPU fits the recorded CPU engines of which one is smaller than the other.
func TestCalibrateVLLMCPU(t *testing.T) {
	path := filepath.Join(dataDir(t), "vllm-cpu", "vllm-cpu-hetero.csv.gz")
	r, err := Calibrate(context.Background(), path, Setup{Limits: []Limits{{MaxSeqs: 64, MaxBatched: 2048}, {MaxSeqs: 12, MaxBatched: 512}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors.Fitted < 1500 || r.Errors.Held < 1500 || *r.Errors.TTFT > 0.25 || *r.Errors.ITL > 0.25 {
		t.Errorf("fitted %d, held %d, errors %.3f, %.3f; want 0.25 at most", r.Errors.Fitted, r.Errors.Held, *r.Errors.TTFT, *r.Errors.ITL)
	}
	_, err = Calibrate(context.Background(), path, Setup{Limits: make([]Limits, 3)})
	if err == nil || !strings.Contains(err.Error(), "2 endpoints, limits for 3") {
		t.Errorf("error %v", err)
	}
}
