package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// records runs and returns copies of all records, by number.
func records(t *testing.T, cfg Config, src Source) ([]Record, *Report) {
	t.Helper()
	var out []Record
	rep, err := Run(cfg, src, func(r *Record) {
		for int(r.Number) >= len(out) {
			out = append(out, Record{})
		}
		out[r.Number] = *r
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, rep
}

// TestDelaysAddUp: an idle engine's first token takes the way there, the frontend, one step and the
// way back; the gap between tokens does not see the way.
func TestDelaysAddUp(t *testing.T) {
	nodes := h100s(t, 1)
	e, err := engine.New(nodes[0].Engine)
	if err != nil {
		t.Fatal(err)
	}
	step := time.Duration(math.Ceil(e.StepTime(0, 0, [2]int{1000, 0}) * 1000))
	job := Job{At: time.Second, PromptTokens: 1000, OutputTokens: 50}
	bare, _ := records(t, Config{Nodes: nodes, Policy: policy(t, "round-robin")}, &Slice{Jobs: []Job{job}})
	if want := engine.Async().Frontend + step; bare[0].TTFT != want || bare[0].Queue != engine.Async().Frontend {
		t.Errorf("TTFT %v, queue %v, want %v", bare[0].TTFT, bare[0].Queue, want)
	}
	const up, there, back = 3 * time.Millisecond, 5 * time.Millisecond, 7 * time.Millisecond
	far, _ := records(t, Config{Nodes: nodes, Policy: policy(t, "round-robin"), Uplink: up, Dispatch: there, Return: back}, &Slice{Jobs: []Job{job}})
	want := bare[0]
	want.TTFT += up + there + back + up
	want.E2E += up + there + back + up
	if diff := cmp.Diff(want, far[0]); diff != "" {
		t.Error(diff)
	}
}

// watcher is a policy that notes what it sees.
type watcher struct {
	see func(q *router.Query)
}

func (*watcher) Name() string { return "watcher" }

func (w *watcher) Route(q *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = 0, 1
	w.see(q)
	return nil
}

// TestLoadsAreAsOldAsScrapesMakeThem: what a policy sees of an engine was written at the last multiple
// of the interval whose page has arrived since.
func TestLoadsAreAsOldAsScrapesMakeThem(t *testing.T) {
	const interval, age = 100 * time.Millisecond, 30 * time.Millisecond
	src := &Slice{}
	for i := range 200 {
		src.Jobs = append(src.Jobs, Job{At: time.Duration(i) * 7 * time.Millisecond, PromptTokens: 3000, OutputTokens: 20})
	}
	asked := map[time.Duration]int{} // requests at the engine at each scrape, as the page says
	cfg := Config{
		Nodes: h100s(t, 1), Scrape: interval, ScrapeAge: age,
		Policy: &watcher{see: func(q *router.Query) {
			now := q.Now.Sub(epoch())
			l := q.Snap.States[0].Load
			written := (now - age) / interval * interval
			if now < age {
				if !l.At.IsZero() {
					t.Errorf("%v: a page has arrived at %v", now, l.At)
				}
				return
			}
			if got := l.At.Sub(epoch()); got != written+age {
				t.Errorf("%v: page of %v, want that of %v", now, got-age, written)
			}
			if n, ok := asked[written]; ok && n != int(l.Waiting+l.Running) {
				t.Errorf("%v: the page of %v says %d requests, and said %d", now, written, l.Waiting+l.Running, n)
			}
			asked[written] = int(l.Waiting + l.Running)
		}},
	}
	if _, err := Run(cfg, src, nil); err != nil {
		t.Fatal(err)
	}
	if len(asked) < 10 || asked[interval] == 0 {
		t.Errorf("pages seen: %v", asked)
	}
}

// TestNoPolicyMovesAnArrival: independent streams.
func TestNoPolicyMovesAnArrival(t *testing.T) {
	arrivals := func(name string) (out []string) {
		src := drawn(11, 60).(*Slice)
		for i := range src.Jobs {
			src.Jobs[i].Then = nil // later turns wait for answers, so they do move
		}
		recs, _ := records(t, Config{Nodes: h100s(t, 3), Policy: policy(t, name), Seed: 9, Adapters: 2}, src)
		for _, r := range recs {
			out = append(out, fmt.Sprint(r.Sent, r.PromptTokens))
		}
		return out
	}
	want := arrivals("round-robin")
	for _, name := range []string{"random", "p2c", "llmd-weighted"} {
		if diff := cmp.Diff(want, arrivals(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestNextTurnWaitsForTheAnswer: a session's next request is sent a thinking time after the answer,
// and finds the conversation cached where it was.
func TestNextTurnWaitsForTheAnswer(t *testing.T) {
	blocks := text(1, 1, 0, 4000)
	const think = 2 * time.Second
	src := &Slice{Jobs: []Job{{
		PromptTokens: 1000, OutputTokens: 200, Blocks: blocks[:75], Session: "a",
		Then: &Slice{Jobs: []Job{
			{At: think, PromptTokens: 1500, OutputTokens: 100, Blocks: blocks[:100], Session: "a"},
			{At: think, PromptTokens: 2000, OutputTokens: 100, Blocks: blocks[:131], Session: "a"},
		}},
	}}}
	recs, _ := records(t, Config{Nodes: h100s(t, 4), Policy: weighted(t), Uplink: time.Millisecond}, src)
	if len(recs) != 3 {
		t.Fatalf("%d requests", len(recs))
	}
	for i := 1; i < 3; i++ {
		if got, want := recs[i].Sent, recs[i-1].Sent+recs[i-1].E2E+think; got != want {
			t.Errorf("turn %d is sent at %v, want %v", i, got, want)
		}
		if recs[i].Node != recs[0].Node {
			t.Errorf("turn %d goes to engine %d, the conversation is on %d", i, recs[i].Node, recs[0].Node)
		}
	}
	// All full blocks computed before: prompt and answer, less the last token.
	if recs[1].CachedTokens != 1199/16*16 || recs[2].CachedTokens != 1599/16*16 {
		t.Errorf("cached: %d and %d", recs[1].CachedTokens, recs[2].CachedTokens)
	}
	// The router knows prompt and answer by 64-token blocks.
	if recs[1].BelievedTokens != 1200/64*64 {
		t.Errorf("believed: %d", recs[1].BelievedTokens)
	}
}

// endless yields the same request for ever.
type endless struct{ job Job }

func (s *endless) Next(j *Job) bool {
	*j = s.job
	return true
}

// TestClosedLoop: each user has one request open, so there are never more requests than users, and
// throughput is users over the time of a request.
func TestClosedLoop(t *testing.T) {
	const users = 12
	src := &Slice{}
	for range users {
		j := Job{PromptTokens: 500, OutputTokens: 100}
		j.Then = &endless{job: j}
		src.Jobs = append(src.Jobs, j)
	}
	var at []time.Duration
	recs, rep := records(t, Config{
		Nodes: h100s(t, 3), Duration: time.Minute,
		Policy: &spread{see: func(q *router.Query) {
			n := int32(0)
			for _, s := range q.Snap.States {
				n += s.Requests
			}
			if n >= users {
				t.Errorf("%d requests are open", n)
			}
		}},
	}, src)
	var total time.Duration
	for _, r := range recs {
		total += r.E2E
		at = append(at, r.Sent)
	}
	if last := at[len(at)-1]; last >= time.Minute || rep.Complete != rep.Requests {
		t.Errorf("last request at %v: %+v", last, rep)
	}
	if got, want := float64(len(recs)), users*time.Minute.Seconds()/(total.Seconds()/float64(len(recs))); math.Abs(got-want) > 0.01*want+users {
		t.Errorf("%v requests, users over cycle time are %v", got, want)
	}
}

// spread rotates, and notes what it sees.
type spread struct {
	n   int
	see func(q *router.Query)
}

func (*spread) Name() string { return "spread" }

func (s *spread) Route(q *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = s.n%len(q.Keep), 1
	s.n++
	s.see(q)
	return nil
}

func TestSLOs(t *testing.T) {
	job := func(at time.Duration, s request.SLO) Job {
		return Job{At: at, PromptTokens: 1000, OutputTokens: 100, SLO: s}
	}
	ms := time.Millisecond
	src := &Slice{Jobs: []Job{
		job(0, request.SLO{}), job(10*time.Second, request.SLO{TTFT: 100 * ms, ITL: 10 * ms, E2E: time.Second}),
		job(20*time.Second, request.SLO{TTFT: 20 * ms}), job(30*time.Second, request.SLO{ITL: 6 * ms}), job(40*time.Second, request.SLO{E2E: 600 * ms}),
	}}
	recs, rep := records(t, Config{Nodes: h100s(t, 1), Policy: policy(t, "round-robin")}, src)
	var met []bool
	for _, r := range recs {
		met = append(met, r.Met)
	}
	if diff := cmp.Diff([]bool{true, true, false, false, false}, met); diff != "" || rep.Met != 2 {
		t.Error(diff, rep.Met)
	}
}

func TestSeerSeesTheTruth(t *testing.T) {
	s := &seer{}
	src := &Slice{Jobs: []Job{{PromptTokens: 640, OutputTokens: 321, Blocks: text(1, 1, 0, 961)}, {At: 10 * time.Second, PromptTokens: 800, OutputTokens: 7, Blocks: text(1, 1, 0, 961)}}}
	if _, err := Run(Config{Nodes: h100s(t, 2), Policy: s}, src, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"321 0 0", "7 60 0"}, s.saw); diff != "" {
		t.Error(diff)
	}
}

// seer notes the length of answers and what the engines have cached.
type seer struct {
	saw []string
}

func (*seer) Name() string { return "seer" }

func (s *seer) See(_ time.Duration, job *Job, engines []*engine.Engine) {
	s.saw = append(s.saw, fmt.Sprint(job.OutputTokens, engines[0].Cached(job.Blocks), engines[1].Cached(job.Blocks)))
}

func (s *seer) Route(_ *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = 0, 1
	return nil
}

var _ Seer = (*seer)(nil)

// TestCacheSizesReachTheIndex: the router's index follows the sizes the engines tell.
func TestCacheSizesReachTheIndex(t *testing.T) {
	x := &sizes{}
	nodes := h100s(t, 2)
	nodes[1].Engine.Blocks = 1000
	src := &Slice{Jobs: []Job{{At: time.Second, PromptTokens: 100, OutputTokens: 2}}}
	if _, err := Run(Config{Nodes: nodes, Policy: policy(t, "round-robin"), Prefixes: x}, src, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"h100-0": 28167 / 4, "h100-1": 250}, x.blocks); diff != "" {
		t.Error(diff)
	}
}

type sizes struct {
	router.Prefixes
	blocks map[string]int
}

func (x *sizes) Match([]uint64, *fleet.Snapshot, []int32) {}
func (x *sizes) Insert(fleet.Ref, []uint64)               {}
func (x *sizes) SetCapacity(r fleet.Ref, n int) {
	if x.blocks == nil {
		x.blocks = map[string]int{}
	}
	x.blocks[r.Endpoint.Name] = n
}
