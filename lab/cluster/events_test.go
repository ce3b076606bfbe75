package cluster

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// steady is n requests of 200 and 50 tokens, one every gap.
func steady(n int, gap time.Duration) *Slice {
	s := &Slice{}
	for i := range n {
		s.Jobs = append(s.Jobs, Job{At: time.Duration(i) * gap, PromptTokens: 200, OutputTokens: 50})
	}
	return s
}

func TestDeadEngineRefusesAtOnceAndReturns(t *testing.T) {
	cfg := Config{Nodes: h100s(t, 2), Policy: policy(t, "round-robin"), Events: []Event{
		{At: 5 * time.Second, Nodes: []int{1}, Kind: Kill}, {At: 10 * time.Second, Nodes: []int{1}, Kind: Revive},
	}}
	recs, rep := records(t, cfg, steady(200, 100*time.Millisecond))
	broken := 0
	for _, r := range recs {
		dead := r.Node == 1 && r.Sent >= 5*time.Second && r.Sent < 10*time.Second
		switch {
		case dead && (r.Cause != fleet.UpstreamError || r.E2E != 0):
			t.Errorf("sent to a dead engine: %+v", r)
		case !dead && r.Cause == fleet.Truncated || r.Cause == fleet.UpstreamError && !dead:
			broken++
			if r.Node != 1 || r.Sent+r.E2E != 5*time.Second {
				t.Errorf("broken: %+v", r)
			}
		case !dead && r.Cause != fleet.Complete:
			t.Errorf("%+v", r)
		}
	}
	if broken == 0 || rep.Failed != uint64(broken)+25 {
		t.Errorf("%d broken, %+v", broken, rep)
	}
}

// TestDeadEngineIsUnreachable: the router's view of a dead engine, and of a restart.
func TestDeadEngineIsUnreachable(t *testing.T) {
	saw := map[int]fleet.Load{}
	w := &watcher{see: func(q *router.Query) { saw[int(q.Now.Sub(epoch())/time.Second)] = *q.Snap.States[1].Load }}
	cfg := Config{Nodes: h100s(t, 2), Policy: w, Events: []Event{
		{At: 2500 * time.Millisecond, Nodes: []int{1}, Kind: Kill}, {At: 5500 * time.Millisecond, Nodes: []int{1}, Kind: Revive},
	}}
	if _, err := Run(cfg, steady(9, time.Second), nil); err != nil {
		t.Fatal(err)
	}
	if l := saw[2]; l.Errors != 0 || l.Unreachable {
		t.Errorf("alive: %+v", l)
	}
	if l := saw[4]; l.Errors < 5 || !l.Unreachable || l.At.Sub(epoch()) != 2400*time.Millisecond {
		t.Errorf("dead: %+v", l)
	}
	if l := saw[8]; l.Errors != 0 || l.Unreachable || l.At.Sub(epoch()) < 7*time.Second {
		t.Errorf("back: %+v", l)
	}
}

// TestFlakyEngine: the share of immediate errors is as asked, drawn from the engine's own stream.
func TestFlakyEngine(t *testing.T) {
	run := func(name string) (failed []float64) {
		cfg := Config{Nodes: h100s(t, 2), Policy: policy(t, name), Seed: 4, Events: []Event{{Nodes: []int{1}, Kind: Fail, Factor: 0.2}}}
		recs, _ := records(t, cfg, steady(4000, 20*time.Millisecond))
		n, bad := [2]float64{}, [2]float64{}
		for _, r := range recs {
			n[r.Node]++
			if r.Cause == fleet.UpstreamError {
				bad[r.Node]++
				if r.E2E != 0 {
					t.Errorf("%+v", r)
				}
			}
		}
		return []float64{bad[0] / n[0], bad[1] / n[1]}
	}
	for _, name := range []string{"round-robin", "least-request"} {
		if f := run(name); f[0] != 0 || math.Abs(f[1]-0.2) > 0.03 {
			t.Errorf("%s: shares of errors %v", name, f)
		}
	}
}

// TestBlindMetrics: the engine serves, its page repeats itself.
func TestBlindMetrics(t *testing.T) {
	type sight struct{ at, changed, prompt float64 }
	saw := map[int]sight{}
	w := &watcher{see: func(q *router.Query) {
		l := q.Snap.States[0].Load
		saw[int(q.Now.Sub(epoch())/time.Second)] = sight{l.At.Sub(epoch()).Seconds(), l.ChangedAt.Sub(epoch()).Seconds(), l.Prompt}
	}}
	cfg := Config{Nodes: h100s(t, 1), Policy: w, Events: []Event{{At: 2100 * time.Millisecond, Nodes: []int{0}, Kind: Blind, Length: 3 * time.Second}}}
	recs, _ := records(t, cfg, steady(80, 100*time.Millisecond))
	if recs[40].Cause != fleet.Complete {
		t.Errorf("%+v", recs[40])
	}
	if a, b := saw[3], saw[4]; a.prompt != b.prompt || a.changed != b.changed || b.at < 4 {
		t.Errorf("while blind: %+v, then %+v", a, b)
	}
	if b := saw[6]; b.prompt <= saw[4].prompt || b.changed < 6 {
		t.Errorf("seeing again: %+v", b)
	}
}

func TestSlowStalledAndUpgradedEngines(t *testing.T) {
	nodes := h100s(t, 1)
	nodes[0].Engine.Profile = engine.Sync()
	src := &Slice{}
	for i := range 5 {
		src.Jobs = append(src.Jobs, Job{At: time.Duration(i) * 10 * time.Second, PromptTokens: 100, OutputTokens: 101})
	}
	recs, _ := records(t, Config{Nodes: nodes, Policy: policy(t, "round-robin"), Events: []Event{
		{At: 9 * time.Second, Nodes: []int{0}, Kind: Slow, Factor: 3},
		{At: 19 * time.Second, Nodes: []int{0}, Kind: Slow, Factor: 1},
		{At: 20100 * time.Millisecond, Nodes: []int{0}, Kind: Stall, Length: 2 * time.Second},
		{At: 29 * time.Second, Nodes: []int{0}, Kind: Upgrade, Profile: engine.Async(), MaxSeqs: 7},
	}}, src)
	itl := func(i int) float64 { return recs[i].ITL.Seconds() * 1000 }
	if r := itl(1) / itl(0); math.Abs(r-3) > 1e-3 {
		t.Errorf("slow engine: ITL %v times as long", r)
	}
	if d := recs[2].E2E - recs[0].E2E; d != 2*time.Second {
		t.Errorf("stalled engine: %v later", d)
	}
	// async saves 1000 us a step and 33 us a request.
	if d := itl(0) - itl(3); math.Abs(d-1.033) > 1e-3 {
		t.Errorf("upgraded engine: %v ms a token less", d)
	}
}

func TestClientsLeave(t *testing.T) {
	src := &Slice{Jobs: []Job{
		{PromptTokens: 100, OutputTokens: 2000, Timeout: time.Second},
		{At: 10 * time.Second, PromptTokens: 100, OutputTokens: 2000, CancelAfter: 33},
		{At: 20 * time.Second, PromptTokens: 100, OutputTokens: 20, Timeout: time.Second},
		{At: 30 * time.Second, PromptTokens: 100000, OutputTokens: 20, Timeout: 100 * time.Millisecond},
	}}
	recs, rep := records(t, Config{Nodes: h100s(t, 1), Policy: policy(t, "round-robin"), Uplink: 2 * time.Millisecond, Dispatch: time.Millisecond}, src)
	if recs[0].Cause != fleet.ClientGone || recs[0].E2E != time.Second || recs[0].OutputTokens < 100 || recs[0].OutputTokens > 200 {
		t.Errorf("timeout: %+v", recs[0])
	}
	if recs[1].Cause != fleet.ClientGone || recs[1].OutputTokens != 33 {
		t.Errorf("cancelled: %+v", recs[1])
	}
	if recs[2].Cause != fleet.Complete {
		t.Errorf("in time: %+v", recs[2])
	}
	if recs[3].Cause != fleet.ClientGone || recs[3].OutputTokens != 0 || recs[3].TTFT != 0 || recs[3].E2E != 100*time.Millisecond {
		t.Errorf("before the first token: %+v", recs[3])
	}
	n := rep.Nodes[0]
	if rep.Left != 3 || n.Cancelled != 2 && n.Cancelled != 3 || n.GenerationTokens > 400 {
		t.Errorf("engines work on for clients that left: %+v", n)
	}
}

// TestPrefillElsewhere: with prefill apart from decode, the first token waits for prefill, transfer
// and one short step; transfers of one engine queue.
func TestPrefillElsewhere(t *testing.T) {
	nodes := fleetOf(t, 3, "H100", "llama-3.3-70b")
	nodes[0].Role, nodes[1].Role, nodes[2].Role = fleet.RolePrefill, fleet.RoleDecode, fleet.RoleDecode
	cfg := Config{
		Nodes: nodes, Policy: &disaggregated{}, Scrape: -1,
		Transfer: Transfer{Setup: time.Millisecond, Rate: 10e9},
	}
	const prompt = 4000
	src := &Slice{Jobs: []Job{
		{PromptTokens: prompt, OutputTokens: 50, Blocks: text(1, 1, 0, prompt+50)},
		{PromptTokens: prompt, OutputTokens: 50, Blocks: text(1, 2, 0, prompt+50)},
		{At: 10 * time.Second, PromptTokens: prompt, OutputTokens: 50, Blocks: text(1, 1, 0, prompt+50)},
	}}
	recs, rep := records(t, cfg, src)
	p, err := engine.New(nodes[0].Engine)
	if err != nil {
		t.Fatal(err)
	}
	ms := func(us float64) float64 { return us / 1000 }
	transfer := 1 + prompt*327680/10e9*1000
	front := engine.Async().Frontend.Seconds() * 1000
	step := ms(p.StepTime(0, 0, [2]int{prompt, 0}, [2]int{prompt, 0}))
	last := ms(p.StepTime(0, 0, [2]int{1, prompt - 1}))
	want := 2*front + step + transfer + last
	if got := recs[0].TTFT.Seconds() * 1000; math.Abs(got-want) > 0.01 {
		t.Errorf("TTFT %.3f ms, want %.3f", got, want)
	}
	if got := (recs[1].TTFT - recs[0].TTFT).Seconds() * 1000; math.Abs(got-transfer) > 0.01 {
		t.Errorf("the second transfer ends %.3f ms later, want %.3f", got, transfer)
	}
	if recs[0].Prefill != 0 || recs[0].Node == recs[1].Node {
		t.Errorf("%+v", recs[0])
	}
	if r := recs[2]; r.Node != 1 || r.CachedTokens != (prompt-1)/16*16 || r.TTFT > recs[0].TTFT/4 {
		t.Errorf("prompt cached on both sides: %+v", r)
	}
	var done []uint64
	for _, n := range rep.Nodes {
		done = append(done, n.Completed)
	}
	if diff := cmp.Diff([]uint64{3, 2, 1}, done); diff != "" {
		t.Error(diff)
	}
}

// disaggregated prefills on the first prefill endpoint and rotates over the others.
type disaggregated struct{ n int }

func (*disaggregated) Name() string { return "disaggregated" }

func (p *disaggregated) Route(_ *router.Query, d *router.Decision) error {
	d.Index, d.Prefill, d.Propensity = 1+p.n%2, 0, 1
	p.n++
	return nil
}

func TestRefusedRequests(t *testing.T) {
	full := errors.New("full")
	j := Job{PromptTokens: 10, OutputTokens: 10}
	j.Then = &endless{job: j}
	recs, rep := records(t, Config{Nodes: h100s(t, 1), Policy: refuser{full}, Duration: time.Second}, &Slice{Jobs: []Job{j}})
	if rep.Refused != 10 || rep.Requests != 10 || recs[3].Node != -1 || recs[3].Cause != fleet.UpstreamError || recs[3].Sent != 3*backoff {
		t.Errorf("%+v, %+v", rep, recs[3])
	}
}

type refuser struct{ err error }

func (refuser) Name() string                                  { return "refuser" }
func (r refuser) Route(*router.Query, *router.Decision) error { return r.err }

func TestConfigRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"no engines":                     func(c *Config) { c.Nodes = nil },
		"no policy":                      func(c *Config) { c.Policy = nil },
		"prefix block of 20 tokens":      func(c *Config) { c.PrefixBlock = 20 },
		"delay is negative":              func(c *Config) { c.Uplink = -1 },
		"scrapes every 1ns":              func(c *Config) { c.Scrape = 1 },
		"transfer rate -1":               func(c *Config) { c.Transfer.Rate = -1 },
		"engine 0: block size 32":        func(c *Config) { c.Nodes[0].Engine.BlockSize = 32 },
		"event 0: engine 7: there are 1": func(c *Config) { c.Events = []Event{{Nodes: []int{7}, Kind: Kill}} },
		"event 0: factor 0":              func(c *Config) { c.Events = []Event{{Kind: Slow}} },
		"event 0: share 2":               func(c *Config) { c.Events = []Event{{Kind: Fail, Factor: 2}} },
		"event 0: kind 99":               func(c *Config) { c.Events = []Event{{Kind: 99}} },
		"engine 0: max seqs -1":          func(c *Config) { c.Nodes[0].Engine.MaxSeqs = -1 },
		"progress every -1":              func(c *Config) { c.Progress = -1 },
		"-3 adapters":                    func(c *Config) { c.Adapters = -3 },
		"name used twice":                func(c *Config) { c.Nodes = append(c.Nodes, c.Nodes[0]); c.Nodes[0].Name, c.Nodes[1].Name = "a", "a" },
	} {
		cfg := Config{Nodes: h100s(t, 1), Policy: policy(t, "round-robin")}
		change(&cfg)
		if _, err := Run(cfg, &Slice{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestUnknownAdapterIsAnError(t *testing.T) {
	cfg := Config{Nodes: h100s(t, 1), Policy: policy(t, "round-robin"), Adapters: 2}
	_, err := Run(cfg, &Slice{Jobs: []Job{{At: time.Second, PromptTokens: 10, OutputTokens: 2, Adapter: 3}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "at 1s: job with adapter 3: the run has 2") {
		t.Errorf("error %v", err)
	}
}

func TestAdaptersAreRoutedByName(t *testing.T) {
	nodes := h100s(t, 2)
	for i := range nodes {
		nodes[i].Engine.MaxLoRA = 2
	}
	src := &Slice{}
	for i := range 40 {
		src.Jobs = append(src.Jobs, Job{At: time.Duration(i) * 50 * time.Millisecond, PromptTokens: 100, OutputTokens: 20, Adapter: int32(1 + i%3)})
	}
	asked := map[string]int{}
	var shown [][]string
	cfg := Config{Nodes: nodes, Adapters: 3, Policy: &spread{see: func(q *router.Query) {
		asked[q.Req.Adapter]++
		shown = append(shown, q.Snap.States[0].RunningLoRA)
		if q.Candidates() != 2 {
			t.Errorf("%d candidates", q.Candidates())
		}
	}}}
	_, rep := records(t, cfg, src)
	if diff := cmp.Diff(map[string]int{"adapter-1": 14, "adapter-2": 13, "adapter-3": 13}, asked); diff != "" {
		t.Error(diff)
	}
	named := false
	for _, s := range shown {
		named = named || len(s) > 0 && strings.HasPrefix(s[0], "adapter-")
	}
	if rep.Complete != 40 || !named || rep.Nodes[0].AdapterLoads < 3 {
		t.Errorf("pages name adapters: %v, %+v", named, rep)
	}
}
