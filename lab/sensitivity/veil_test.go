package sensitivity

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// listener is a policy that notes what it is shown and takes the first candidate.
type listener struct {
	fore   []features.Forecast
	states []fleet.State
	ticks  int
	ends   int
}

func (*listener) Name() string { return "listener" }

func (l *listener) Route(q *router.Query, d *router.Decision) error {
	l.fore = append([]features.Forecast(nil), q.Forecasts()...)
	l.states = append([]fleet.State(nil), q.Snap.States...)
	d.Index, d.Propensity = 0, 1
	return nil
}

func (l *listener) Tick(time.Time, *fleet.Snapshot) { l.ticks++ }
func (l *listener) Observe(_ *features.Observation) { l.ends++ }

// twins is a query over n endpoints of which the same is foretold.
func twins(n int) *router.Query {
	q := &router.Query{Now: at(0), Req: &request.Request{PromptTokens: 1000}, Snap: &fleet.Snapshot{At: at(0), States: make([]fleet.State, n)}, Hits: make([]int32, n), Keep: make([]bool, n)}
	fore := make([]features.Forecast, n)
	for i := range fore {
		q.Keep[i] = true
		fore[i] = features.Forecast{
			TTFT: features.Prediction{Mean: 1, P50: 1, P90: 2, P99: 3}, ITL: features.Prediction{Mean: 0.1, P50: 0.1, P90: 0.2, P99: 0.3},
			Price: features.Price{First: 1, KVWait: 2, Prefill: 3, Gap: 4, Decode: 5, Sigma: 0.1},
		}
	}
	q.Suppose(fore)
	return q
}

// TestNoise: factors are log-normal with the sigma that was asked for, one for all times of an
// endpoint, drawn anew each time or once; what is recorded stays the forecast.
func TestNoise(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		l := &listener{}
		n := newNoise(l, 0.3, lasts, false, 1)
		var logs []float64
		byEndpoint := map[int]map[float32]bool{0: {}, 1: {}}
		for range 2000 {
			q := twins(2)
			if err := n.Route(q, new(router.Decision)); err != nil {
				t.Fatal(err)
			}
			for i, f := range l.fore {
				by := f.Price.First
				byEndpoint[i][by] = true
				logs = append(logs, math.Log(float64(by)))
				want := q.Forecasts()[i]
				scale(&want, by)
				if diff := cmp.Diff(want, f); diff != "" {
					t.Fatalf("not all times by one factor:\n%s", diff)
				}
				if f.Price.Sigma != 0.1 {
					t.Fatal("sigma is no time")
				}
			}
			if q.Forecasts()[0].Price.First != 1 {
				t.Fatal("the router's own forecast changed")
			}
		}
		if lasts {
			if len(byEndpoint[0]) != 1 || len(byEndpoint[1]) != 1 || l.fore[0].Price.First == l.fore[1].Price.First {
				t.Errorf("a bias has %d and %d values", len(byEndpoint[0]), len(byEndpoint[1]))
			}
			continue
		}
		if m, sd := stat.Mean(logs), stat.SD(logs); math.Abs(m) > 0.02 || math.Abs(sd-0.3) > 0.02 {
			t.Errorf("logs of factors have mean %.3f and deviation %.3f", m, sd)
		}
	}
}

// TestNoiseTold: a policy that is told the error sees it in the sigma of differences.
func TestNoiseTold(t *testing.T) {
	l := &listener{}
	if err := newNoise(l, 0.3, false, true, 1).Route(twins(1), new(router.Decision)); err != nil {
		t.Fatal(err)
	}
	if s := l.fore[0].Price.Sigma; math.Abs(float64(s)-math.Hypot(0.1, 0.3)) > 1e-6 {
		t.Errorf("sigma %v", s)
	}
}

func TestLengths(t *testing.T) {
	l := &listener{}
	x := &lengths{veil: veil{l}}
	for want, j := range map[float32]cluster.Job{400: {OutputTokens: 100}, 40: {OutputTokens: 100, CancelAfter: 10}} {
		x.See(0, &j, nil)
		if err := x.Route(twins(1), new(router.Decision)); err != nil || l.fore[0].Price.Decode != want {
			t.Errorf("%+v: %v s of streaming, want %v; %v", j, l.fore[0].Price.Decode, want, err)
		}
	}
}

// TestVeilsPassOn: a policy behind a veil is told all that it would be told without.
func TestVeilsPassOn(t *testing.T) {
	l := &listener{}
	v := &late{veil: veil{l}}
	v.Tick(at(0), nil)
	v.Observe(new(features.Observation))
	if l.ticks != 1 || l.ends != 1 || v.Name() != "listener" {
		t.Errorf("%d ticks, %d ends, name %s", l.ticks, l.ends, v.Name())
	}
	veil{stranger{}}.Tick(at(0), nil)
	veil{stranger{}}.Observe(nil)
}

// stranger is a policy that wants to be told nothing.
type stranger struct{ router.Policy }

// TestLateLedger: at every decision the account is that of a ledger in which requests that are younger
// than the delay, and have no token, were never begun.
func TestLateLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := time.Duration(rapid.IntRange(0, 5).Draw(t, "late by")) * time.Second
		l := &listener{}
		x := &late{veil: veil{l}, by: by}
		type sent struct {
			at    time.Time
			work  fleet.Work
			token bool
		}
		var all []sent
		for i := range rapid.IntRange(1, 12).Draw(t, "decisions") {
			now := at(float64(i))
			q := twins(1)
			q.Now, q.Snap.At = now, now
			q.Req = &request.Request{PromptTokens: rapid.IntRange(1, 3).Draw(t, "prompt") * 100}
			in, want := &q.Snap.States[0].Inflight, fleet.Inflight{}
			for _, s := range all {
				if !s.token {
					hold(in, &s.work, s.at)
				}
				if !s.token && now.Sub(s.at) >= by {
					hold(&want, &s.work, s.at)
				}
			}
			in.Begun, want.Begun = 100, 100 // not compared below: both count what ended too
			d := new(router.Decision)
			if err := x.Route(q, d); err != nil {
				t.Fatal(err)
			}
			got := l.states[0].Inflight
			got.Begun, got.BegunUncached = 100, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("decision %d:\n%s", i, diff)
			}
			x.Record(router.ID{}, q, d)
			all = append(all, sent{at: now, work: q.Work(0)})
			if k := rapid.IntRange(-3, i).Draw(t, "token of"); k >= 0 && !all[k].token {
				all[k].token = true
				x.First(&features.Observation{At: all[k].at, PromptTokens: int(all[k].work.Prompt)})
			}
		}
	})
}

// hold adds a pending request to an account.
func hold(in *fleet.Inflight, w *fleet.Work, at time.Time) {
	if in.Pending == 0 {
		in.OldestPending, in.HeadUncached = at, w.Prompt-w.Cached
	}
	u := w.Prompt - w.Cached
	in.Requests++
	in.Pending++
	in.PendingTokens += w.Prompt
	in.Uncached += u
	in.Attention += u * (2*w.Cached + u)
}

// endpoints is a fleet of n, and its snapshot at a second.
func endpoints(t *testing.T, n int) (refs []fleet.Ref, snap func(second float64) *fleet.Snapshot) {
	t.Helper()
	nodes := make([]*fleet.Endpoint, n)
	for i := range nodes {
		nodes[i] = &fleet.Endpoint{Name: string(rune('a' + i)), Addr: addr(i)}
	}
	f := new(fleet.Fleet)
	ch, err := f.Sync(at(0), nodes)
	if err != nil {
		t.Fatal(err)
	}
	return ch.Added, func(second float64) *fleet.Snapshot {
		s := new(fleet.Snapshot)
		f.Snapshot(at(second), s)
		return s
	}
}

func chain(n int) []uint64 {
	c := make([]uint64, n)
	for i := range c {
		c[i] = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	return c
}

// TestLateIndex: what an endpoint was sent is matched after the delay, not before, even if the caller
// reuses the chain.
func TestLateIndex(t *testing.T) {
	refs, snap := endpoints(t, 1)
	x := &lateIndex{belief: prefix.NewIndex(prefix.Options{}), by: time.Second}
	mine, hits := chain(40), make([]int32, 1)
	match := func(second float64) int32 {
		x.Match(chain(40), snap(second), hits)
		return hits[0]
	}
	match(0)
	x.Insert(refs[0], mine)
	clear(mine)
	if n := match(0.9); n != 0 {
		t.Errorf("%d blocks are known before their time", n)
	}
	if n := match(1); n != 40 {
		t.Errorf("%d blocks are known after a second", n)
	}
	x.Withdraw(refs[0], chain(40), 0)
	if n := match(1.5); n != 40 {
		t.Errorf("%d blocks are left before their withdrawal is known", n)
	}
	if n := match(2); n != 0 {
		t.Errorf("%d blocks are left after it", n)
	}
}

// TestWrongIndex: shares of matches are missed or claimed; a claim is what the best endpoint holds.
func TestWrongIndex(t *testing.T) {
	refs, snap := endpoints(t, 2)
	for _, c := range []struct{ missed, claimed, holder, other float64 }{{0.3, 0, 0.7, 0}, {0, 0.2, 1, 0.2}, {0, 0, 1, 0}, {1, 0, 0, 0}} {
		x := newWrongIndex(prefix.NewIndex(prefix.Options{}), c.missed, c.claimed, 1)
		x.Insert(refs[0], chain(40))
		var full [2]float64
		const n = 4000
		hits := make([]int32, 2)
		for range n {
			x.Match(chain(40), snap(0), hits)
			for i, h := range hits {
				if h == 40 {
					full[i] += 1.0 / n
				} else if h != 0 {
					t.Fatalf("%d blocks", h)
				}
			}
		}
		if math.Abs(full[0]-c.holder) > 0.03 || math.Abs(full[1]-c.other) > 0.03 {
			t.Errorf("missed %v, claimed %v: matched %.3f and %.3f of the time", c.missed, c.claimed, full[0], full[1])
		}
	}
}

// TestTrueIndex: the match is what the engine has cached, in whole blocks of the router.
func TestTrueIndex(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	coefs, err := table.Find("H100", "llama-3.1-8b", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	var engines []*engine.Engine
	for range 2 {
		e, err := engine.New(engine.Config{Coefs: *coefs})
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	tokens := chain(100) // blocks of 16 tokens
	if _, err := engines[1].Submit(0, &engine.Request{PromptTokens: 1600, OutputTokens: 2, Blocks: tokens}); err != nil {
		t.Fatal(err)
	}
	x := &trueIndex{block: 64}
	j := &cluster.Job{PromptTokens: 1000, OutputTokens: 1, Blocks: slices.Clone(tokens[:62])}
	x.See(0, j, engines)
	hits := make([]int32, 2)
	x.Match(chain(15), nil, hits)
	if want := []int32{0, 15}; !slices.Equal(hits, want) { // 992 tokens are cached by then: 15 blocks of 64
		t.Errorf("hits %v, want %v", hits, want)
	}
	x.Match(chain(3), nil, hits)
	if hits[1] != 3 {
		t.Errorf("%d of 3 blocks", hits[1])
	}
}
