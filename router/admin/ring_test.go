package admin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

var t0 = time.Date(2026, 11, 29, 14, 7, 31, 412e6, time.UTC)

// pool makes a fleet of n endpoints with pages of some load.
func pool(t testing.TB, n int) *fleet.Fleet {
	t.Helper()
	f := &fleet.Fleet{}
	var list []*fleet.Endpoint
	for i := range n {
		list = append(list, &fleet.Endpoint{Name: fmt.Sprintf("h100-%d", i+1), Model: "llama-3.1-8b", Engine: "vllm", GPU: "H100", TP: 1,
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8000)})
	}
	ch, err := f.Sync(t0.Add(-time.Hour), list)
	if err != nil {
		t.Fatal(err)
	}
	for i, ref := range ch.Added {
		f.SetLoad(ref, &fleet.Load{At: t0.Add(-40 * time.Millisecond), Known: fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV,
			Waiting: int32(i % 3), Running: int32(i), KVUsage: float32(i%10) / 10})
	}
	return f
}

func policy(t testing.TB, name string) router.Policy {
	t.Helper()
	p, err := baseline.Policies().New(name, router.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func prompt(tokens int) *request.Request {
	return &request.Request{API: request.Chat, Model: "llama-3.1-8b", Stream: true, PromptTokens: tokens, ExactTokens: true, PromptBytes: 4 * tokens,
		BlockSize: 256, Blocks: make([]uint64, tokens/64), Choices: 1, SLO: request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}}
}

// reference keeps decisions the plain way.
type reference struct {
	ids  []router.ID
	rows map[router.ID][]Candidate
	why  map[router.ID]router.Explanation
}

func (r *reference) Record(id router.ID, q *router.Query, d *router.Decision) {
	var list []Candidate
	for i := range q.Snap.States {
		s := &q.Snap.States[i]
		c := Candidate{Endpoint: s.Name, Picked: i == d.Index, LeftOut: d.Why.Filtered[i], Total: Figure(d.Why.Totals[i]),
			Cached: q.Req.CachedTokens(int(q.Hits[i])), Requests: int(s.Requests), Uncached: int(s.Uncached)}
		if c.LeftOut == "" {
			for _, v := range d.Why.Row(i) {
				c.Terms = append(c.Terms, Figure(v))
			}
		}
		list = append(list, c)
	}
	r.ids = append(r.ids, id)
	r.rows[id] = list
	r.why[id] = router.Explanation{Reason: d.Why.Reason}
}

// TestRingAgainstReference routes thousands of requests over a changing fleet with several policies,
// ends them in random order, and compares what the ring says with what was recorded the plain way.
func TestRingAgainstReference(t *testing.T) {
	const decisions, capacity = 3000, 256
	ring := NewRing(RingOptions{Decisions: capacity, Memory: 4 << 20, Every: 16})
	ref := &reference{rows: map[router.ID][]Candidate{}, why: map[router.ID]router.Explanation{}}
	f := pool(t, 12)
	var drain fleet.Snapshot
	f.Snapshot(t0, &drain)
	var list []*fleet.Endpoint
	for i := range drain.States {
		e := *drain.States[i].Endpoint
		e.Drain = i == 5
		list = append(list, &e)
	}
	if _, err := f.Sync(t0, list); err != nil {
		t.Fatal(err)
	}
	r := router.New(router.Options{Fleet: f, Policy: policy(t, "weighted"), Recorder: router.Recorders{ring, ref}, Observer: ring, Seed: 5})
	rnd := rand.New(rand.NewPCG(1, 1))
	names := baseline.Policies().Names()
	var open []*router.Flight
	causes := map[router.ID]fleet.Cause{}
	for n := range decisions {
		if n%200 == 0 {
			r.SetPolicy(policy(t, names[n/200%len(names)]))
		}
		if n%500 == 499 {
			var snap fleet.Snapshot
			f.Snapshot(t0, &snap)
			var list []*fleet.Endpoint
			for i := range snap.States {
				list = append(list, snap.States[i].Endpoint)
			}
			if _, err := f.Sync(t0, list[:len(list)-1]); err != nil {
				t.Fatal(err)
			}
		}
		fl := &router.Flight{}
		if err := r.Route(&router.Ask{Now: t0, Req: prompt(64 + rnd.IntN(5000))}, fl); err != nil {
			t.Fatal(err)
		}
		open = append(open, fl)
		for len(open) > 100 {
			i := rnd.IntN(len(open))
			end := open[i]
			open = slices.Delete(open, i, i+1)
			cause := fleet.Complete
			if rnd.IntN(10) == 0 {
				cause = fleet.UpstreamError
			}
			causes[end.ID] = cause
			end.Tokens(t0.Add(10*time.Millisecond), 1)
			end.Finish(t0.Add(20*time.Millisecond), &router.Outcome{Cause: cause, Usage: router.Usage{Cached: -1, Output: -1}})
		}
	}
	full, short, gone, whole := 0, 0, 0, 0
	for age := range ref.ids {
		id := ref.ids[len(ref.ids)-1-age]
		x := ring.Get(id)
		if x == nil {
			if gone++; age < capacity {
				t.Fatalf("decision %s of age %d is gone", id, age)
			}
			continue
		}
		if len(x.Candidates) == 0 && x.Outcome != nil { // its end came when the decision had been pushed out
			short++
			continue
		}
		if x.ID != id.String() || x.Reason != reasonText(ref, id) {
			t.Fatalf("%s came back as %s for %s", id, x.ID, x.Reason)
		}
		if x.All {
			full++
			if age >= capacity {
				whole++
				if c := causes[id]; c == fleet.Complete && id.Seq()%16 != 0 {
					t.Errorf("%s, age %d, cause %s, is kept in full", id, age, c)
				}
			}
			if diff := cmp.Diff(ref.rows[id], x.Candidates, cmpopts.IgnoreFields(Candidate{}, "Chance", "Waiting", "Running", "KV", "Age")); diff != "" {
				t.Fatalf("%s (-recorded +ring)\n%s", id, diff)
			}
			continue
		}
		short++
		if len(x.Candidates) > topRows || !x.Candidates[0].Picked {
			t.Fatalf("%s keeps %d candidates, the first picked: %t", id, len(x.Candidates), x.Candidates[0].Picked)
		}
		for i, c := range x.Candidates {
			if c.LeftOut != "" || i > 1 && worseFirst(x, i) {
				t.Fatalf("%s keeps %+v", id, x.Candidates)
			}
			c.Chance, c.Waiting, c.Running, c.KV, c.Age = nil, nil, nil, nil, nil
			if !slices.ContainsFunc(ref.rows[id], func(r Candidate) bool { return cmp.Equal(r, c) }) {
				t.Fatalf("%s: nobody recorded %+v", id, c)
			}
		}
	}
	if full < capacity || short < 500 || whole < 100 {
		t.Errorf("%d in full, %d of them old, %d short, %d gone", full, whole, short, gone)
	}
	if x := ring.Last(); x == nil || x.ID != ref.ids[len(ref.ids)-1].String() || x.Outcome != nil {
		t.Errorf("last is %+v", x)
	}
}

// worseFirst reports whether candidate i, past the picked one, is better than the one before it.
func worseFirst(x *Explained, i int) bool {
	a, b := x.Candidates[i-1].Total, x.Candidates[i].Total
	if x.Unit == "score" {
		return b > a
	}
	return b < a
}

func reasonText(r *reference, id router.ID) string { return r.why[id].Reason.String() }

// TestRingKeepsWhatMatters: failures, exploration, missed SLOs and one in Every stay in full after
// thousands of others; ordinary ones keep the best four; before the end all are whole.
func TestRingKeepsWhatMatters(t *testing.T) {
	ring := NewRing(RingOptions{Decisions: 16, Memory: 8 << 20, Every: 1000})
	f := pool(t, 10)
	explore := 1.0
	greedy, err := router.NewProfile("greedy", router.ProfileSpec{Scorers: map[string]*float64{"kv": nil}})
	if err != nil {
		t.Fatal(err)
	}
	curious, err := router.NewProfile("curious", router.ProfileSpec{Scorers: map[string]*float64{"kv": nil}, Picker: "epsilon-greedy", Epsilon: &explore})
	if err != nil {
		t.Fatal(err)
	}
	r := router.New(router.Options{Fleet: f, Policy: greedy, Recorder: ring, Observer: ring})
	run := func(p router.Policy, ttft time.Duration, cause fleet.Cause) router.ID {
		r.SetPolicy(p)
		var fl router.Flight
		if err := r.Route(&router.Ask{Now: t0, Req: prompt(640)}, &fl); err != nil {
			t.Fatal(err)
		}
		if x := ring.Get(fl.ID); x == nil || !x.All || x.Outcome != nil || len(x.Candidates) != 10 {
			t.Fatalf("before its end: %+v", x)
		}
		fl.Tokens(t0.Add(ttft), 1)
		fl.Finish(t0.Add(2*ttft), &router.Outcome{Cause: cause, Usage: router.Usage{Cached: -1, Output: -1}})
		return fl.ID
	}
	ms := time.Millisecond
	plain := run(greedy, 10*ms, fleet.Complete)
	late := run(greedy, 1001*ms, fleet.Complete)
	failed := run(greedy, 10*ms, fleet.ClientGone)
	tried := run(curious, 10*ms, fleet.Complete)
	for ring.Get(tried).Reason != "explore" {
		tried = run(curious, 10*ms, fleet.Complete)
	}
	var sampled router.ID
	for range 1100 {
		if id := run(greedy, 10*ms, fleet.Complete); id.Seq() == 1000 {
			sampled = id
		}
	}
	for what, id := range map[string]router.ID{"late": late, "failed": failed, "exploratory": tried, "one in 1000": sampled} {
		if x := ring.Get(id); x == nil || !x.All || len(x.Candidates) != 10 || x.Outcome == nil {
			t.Errorf("the %s one is kept as %+v", what, x)
		}
	}
	if x := ring.Get(plain); x == nil || x.All || len(x.Candidates) != 4 {
		t.Errorf("the plain one is kept as %+v", x)
	}
	worst := ring.Worst(3)
	if len(worst) != 3 || worst[0].ID != late.String() || !slices.Equal(worst[0].Outcome.Missed, []string{"ttft"}) {
		t.Errorf("worst: %+v", worst)
	}
	if len(ring.Worst(0)) != 0 || len(ring.Worst(-1)) != 0 {
		t.Error("worst of none")
	}
	if x := ring.Get(router.ID{}); x != nil {
		t.Errorf("the zero id names %+v", x)
	}
}

// TestRingOutlivedDecision: the end of a request whose decision was pushed out long ago is still told.
func TestRingOutlivedDecision(t *testing.T) {
	ring := NewRing(RingOptions{Decisions: 4})
	r := router.New(router.Options{Fleet: pool(t, 3), Policy: policy(t, "random"), Recorder: ring, Observer: ring})
	var long router.Flight
	if err := r.Route(&router.Ask{Now: t0, Req: prompt(640)}, &long); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := r.Route(&router.Ask{Now: t0, Req: prompt(640)}, &router.Flight{}); err != nil {
			t.Fatal(err)
		}
	}
	if ring.Get(long.ID) != nil {
		t.Fatal("still there")
	}
	long.Tokens(t0.Add(time.Second), 1)
	long.Finish(t0.Add(time.Minute), &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Prompt: 700, Cached: 64, Output: 9}})
	x := ring.Get(long.ID)
	if x == nil || x.Outcome == nil || len(x.Candidates) != 0 || x.Endpoint != long.Picked.Name || x.Policy != "random" || *x.Outcome.Output != 9 {
		t.Fatalf("%+v", x)
	}
	if err := x.Text(&strings.Builder{}, TextOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRingMemoryIsBounded: whatever the fleet's size, the ring takes what it was given, and the
// newest decision is always there.
func TestRingMemoryIsBounded(t *testing.T) {
	const memory = 2 << 20
	if size := int(reflect.TypeFor[head]().Size()); size > headBytes {
		t.Errorf("a head takes %d bytes, accounted as %d", size, headBytes)
	}
	for _, endpoints := range []int{1, 100, 1000} {
		ring := NewRing(RingOptions{Memory: memory})
		r := router.New(router.Options{Fleet: pool(t, endpoints), Policy: policy(t, "weighted"), Recorder: ring, Observer: ring})
		for range max(40, 500-endpoints) {
			var fl router.Flight
			if err := r.Route(&router.Ask{Now: t0, Req: prompt(64)}, &fl); err != nil {
				t.Fatal(err)
			}
			if x := ring.Last(); x == nil || x.ID != fl.ID.String() || len(x.Candidates) != endpoints {
				t.Fatalf("%d endpoints: last is %+v", endpoints, x)
			}
			fl.Finish(t0, &router.Outcome{Cause: fleet.UpstreamError})
		}
		total := 0
		for _, s := range []*shelf{&ring.full, &ring.kept, &ring.brief} {
			total += cap(s.heads)*headBytes + cap(s.words)*wordBytes
		}
		if total > memory {
			t.Errorf("%d endpoints: %d bytes of %d", endpoints, total, memory)
		}
	}
	// A decision larger than all memory is not kept, and harms nothing.
	tiny := NewRing(RingOptions{Memory: 8 << 10})
	r := router.New(router.Options{Fleet: pool(t, 1000), Policy: policy(t, "weighted"), Recorder: tiny, Observer: tiny})
	var fl router.Flight
	if err := r.Route(&router.Ask{Now: t0, Req: prompt(64)}, &fl); err != nil {
		t.Fatal(err)
	}
	fl.Finish(t0, &router.Outcome{Cause: fleet.Complete})
	if x := tiny.Get(fl.ID); x == nil || x.Outcome == nil || len(x.Candidates) != 0 {
		t.Errorf("kept %+v", x)
	}
}

// TestRingDoesNotAllocate under the decision lock.
func TestRingDoesNotAllocate(t *testing.T) {
	ring := NewRing(RingOptions{})
	q, d := decided(t, 100)
	ring.Record(router.ID{}, q, d)
	if n := testing.AllocsPerRun(200, func() { ring.Record(router.ID{}, q, d) }); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
}

// decided returns a query over n endpoints and the weighted policy's decision.
func decided(t testing.TB, n int) (*router.Query, *router.Decision) {
	var q router.Query
	var d router.Decision
	grab := recorder(func(_ router.ID, query *router.Query, decision *router.Decision) { q, d = *query, *decision })
	r := router.New(router.Options{Fleet: pool(t, n), Policy: policy(t, "weighted"), Recorder: grab})
	if err := r.Route(&router.Ask{Now: t0, Req: prompt(6400)}, &router.Flight{}); err != nil {
		t.Fatal(err)
	}
	return &q, &d
}

type recorder func(id router.ID, q *router.Query, d *router.Decision)

func (r recorder) Record(id router.ID, q *router.Query, d *router.Decision) { r(id, q, d) }

// TestRingWhileInUse reads while others decide and end.
func TestRingWhileInUse(t *testing.T) {
	ring := NewRing(RingOptions{Decisions: 64, Memory: 1 << 20})
	r := router.New(router.Options{Fleet: pool(t, 8), Policy: policy(t, "weighted"), Recorder: ring, Observer: ring})
	var work, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if x := ring.Last(); x != nil {
					if err := x.Text(&strings.Builder{}, TextOptions{}); err != nil {
						t.Error(err)
					}
				}
				ring.Worst(5)
			}
		})
	}
	for range 4 {
		work.Go(func() {
			for range 300 {
				var fl router.Flight
				if err := r.Route(&router.Ask{Now: t0, Req: prompt(640)}, &fl); err != nil {
					t.Error(err)
					return
				}
				fl.Tokens(t0.Add(time.Second), 1)
				fl.Finish(t0.Add(time.Second), &router.Outcome{Cause: fleet.Complete})
			}
		})
	}
	work.Wait()
	close(stop)
	readers.Wait()
}

// TestRowWords: what a row holds comes back, and what does not fit or is not known says so.
func TestRowWords(t *testing.T) {
	ring := NewRing(RingOptions{})
	h := &head{terms: []string{"a"}, names: []*fleet.Endpoint{{Name: "e"}}}
	one := func(s fleet.State, ageMS int64) Candidate {
		w := make([]uint32, h.width())
		s.Endpoint = h.names[0]
		putState(w, &s, ageMS)
		return ring.candidate(h, w)
	}
	known := fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV
	c := one(fleet.State{Load: &fleet.Load{Known: known, Waiting: 3, Running: 250, KVUsage: 0.904}, Inflight: fleet.Inflight{Uncached: 123_456}}, 187)
	if *c.Waiting != 3 || *c.Running != 250 || *c.KV != 0.904 || *c.Age != 180 || c.Uncached != 123_456 {
		t.Errorf("%+v", c)
	}
	c = one(fleet.State{Load: &fleet.Load{Known: known, Waiting: math.MaxInt32, KVUsage: 1}, Inflight: fleet.Inflight{Uncached: math.MaxInt64}}, math.MaxInt64)
	if *c.Waiting != none-1 || *c.Running != 0 || *c.KV != 1 || *c.Age != (none-1)*ageStep || c.Uncached != math.MaxUint32 {
		t.Errorf("%+v", c)
	}
	for _, kv := range []float32{float32(math.NaN()), -0.1, 1.1} {
		c = one(fleet.State{Load: &fleet.Load{Known: known, Waiting: -1, Running: -1, KVUsage: kv}}, -1)
		if c.Waiting != nil || c.Running != nil || c.KV != nil || c.Age != nil {
			t.Errorf("%+v", c)
		}
	}
	if c = one(fleet.State{Load: &fleet.Load{}}, 0); c.Waiting != nil || c.KV != nil || *c.Age != 0 {
		t.Errorf("%+v", c)
	}
}

// TestManyFilterNames: names beyond the numbering are still told apart from none.
func TestManyFilterNames(t *testing.T) {
	ring := NewRing(RingOptions{})
	for i := range 300 {
		name := fmt.Sprintf("filter-%d", i)
		w := []uint32{wordLedger: ring.code(name) << 24}
		want := name
		if i >= 254 {
			want = "filtered"
		}
		if got := ring.filter(w); got != want {
			t.Fatalf("%s came back as %q", name, got)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	ring := NewRing(RingOptions{})
	q, d := decided(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		ring.Record(router.ID{}, q, d)
	}
}
