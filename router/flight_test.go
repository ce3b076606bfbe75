package router

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// index is a Prefixes that knows what it was told, by instance.
type index map[uint64][]uint64

func (x index) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	for i := range snap.States {
		held := x[snap.States[i].Instance]
		for hits[i] = 0; int(hits[i]) < min(len(blocks), len(held)) && blocks[hits[i]] == held[hits[i]]; hits[i]++ {
		}
	}
}

func (x index) Insert(r fleet.Ref, blocks []uint64) { x[r.Instance] = slices.Clone(blocks) }
func (x index) Correct(r fleet.Ref, blocks []uint64, held, _ int) {
	x[r.Instance] = slices.Clone(blocks[:min(held, len(blocks))])
}
func (x index) Withdraw(r fleet.Ref, blocks []uint64, held int) {
	x[r.Instance] = slices.Clone(blocks[:held])
}

// flown routes one request of 640 tokens in 10 blocks to e0 of a fleet of 2.
func flown(t *testing.T) (*Router, *Flight, *log, index) {
	t.Helper()
	l, x := &log{}, index{}
	r := New(Options{Fleet: pool(t, 2, nil), Policy: pickAt(0), Observer: l, Recorder: l, Prefixes: x})
	req := prompt(640)
	for i := range req.Blocks {
		req.Blocks[i] = uint64(i + 1)
	}
	fl := &Flight{}
	if err := r.Route(&Ask{Now: t0, Req: req}, fl); err != nil {
		t.Fatal(err)
	}
	return r, fl, l, x
}

var silent = Usage{Cached: features.Unknown, Output: features.Unknown}

// TestServedMovesTheWork: the ledger, the record and the index follow the endpoint that the gateway
// really used.
func TestServedMovesTheWork(t *testing.T) {
	r, fl, l, x := flown(t)
	if !fl.Served(addr(0)) {
		t.Error("the picked endpoint is not accepted")
	}
	if fl.Served(netip.MustParseAddrPort("10.9.9.9:8000")) {
		t.Error("an address outside the fleet is accepted")
	}
	if diff := cmp.Diff(map[string]int32{"e0": 1, "e1": 0}, inflight(r.Fleet())); diff != "" {
		t.Error(diff)
	}
	if !fl.Served(addr(1)) {
		t.Error("the other endpoint is not accepted")
	}
	if diff := cmp.Diff(map[string]int32{"e0": 0, "e1": 1}, inflight(r.Fleet())); diff != "" {
		t.Error(diff)
	}
	if len(x[1]) != 0 || len(x[2]) != 10 {
		t.Errorf("the index has %d blocks on e0 and %d on e1", len(x[1]), len(x[2]))
	}
	fl.Tokens(t0.Add(time.Second), 1)
	fl.Finish(t0.Add(2*time.Second), &Outcome{Cause: fleet.Complete, Usage: silent})
	if o := l.obs[0]; o.Picked != "e0" || o.Endpoint != "e1" || o.TTFT != time.Second || o.E2E != 2*time.Second {
		t.Errorf("picked %s, served by %s, TTFT %s, E2E %s", o.Picked, o.Endpoint, o.TTFT, o.E2E)
	}
	if fl.Served(addr(0)) {
		t.Error("moved after the end")
	}
	if diff := cmp.Diff(map[string]int32{"e0": 0, "e1": 0}, inflight(r.Fleet())); diff != "" {
		t.Error(diff)
	}
}

// TestUsageIsSettledOnce: reported counts win over counted events, unknown stays unknown, and a gap
// between tokens needs two of them.
func TestUsageIsSettledOnce(t *testing.T) {
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	cases := []struct {
		name    string
		choices int
		fly     func(f *Flight)
		usage   Usage
		want    features.Observation
	}{
		{"reported", 1, func(f *Flight) { f.Tokens(at(100), 1); f.Tokens(at(400), 1) }, Usage{Prompt: 7, Cached: 3, Output: 4},
			features.Observation{PromptTokens: 7, CachedTokens: 3, OutputTokens: 4, ExactOutput: true, TTFT: 100 * time.Millisecond, ITL: 100 * time.Millisecond}},
		{"counted", 1, func(f *Flight) { f.Tokens(at(100), 1); f.Tokens(at(200), 2) }, silent,
			features.Observation{PromptTokens: 640, CachedTokens: -1, OutputTokens: 3, TTFT: 100 * time.Millisecond, ITL: 50 * time.Millisecond}},
		{"one token has no gap", 1, func(f *Flight) { f.Tokens(at(100), 1) }, silent,
			features.Observation{PromptTokens: 640, CachedTokens: -1, OutputTokens: 1, TTFT: 100 * time.Millisecond}},
		{"two choices share the stream", 2, func(f *Flight) { f.Tokens(at(100), 2); f.Tokens(at(400), 6) }, Usage{Cached: -1, Output: 8},
			features.Observation{PromptTokens: 640, CachedTokens: -1, OutputTokens: 8, ExactOutput: true, TTFT: 100 * time.Millisecond, ITL: 100 * time.Millisecond}},
		{"nothing seen", 1, func(*Flight) {}, silent,
			features.Observation{PromptTokens: 640, CachedTokens: -1, OutputTokens: -1}},
		{"nonsense counts are ignored", 1, func(f *Flight) { f.Tokens(at(1), 0); f.Tokens(at(2), -5) }, silent,
			features.Observation{PromptTokens: 640, CachedTokens: -1, OutputTokens: -1}},
		{"embeddings", 1, func(*Flight) {}, Usage{Prompt: 10, Cached: 8, Output: features.Unknown},
			features.Observation{PromptTokens: 10, CachedTokens: 8, OutputTokens: -1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, fl, l, _ := flown(t)
			fl.req.Choices = c.choices
			c.fly(fl)
			fl.Finish(at(500), &Outcome{Cause: fleet.Complete, Usage: c.usage})
			o := l.obs[0]
			got := features.Observation{PromptTokens: o.PromptTokens, CachedTokens: o.CachedTokens, OutputTokens: o.OutputTokens,
				ExactOutput: o.ExactOutput, TTFT: o.TTFT, ITL: o.ITL}
			if diff := cmp.Diff(c.want, got, comparableClass); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestIndexFollowsTheEnd: what the endpoint holds is corrected by what it reported, withdrawn when
// the prompt was never computed, and grows by the answer.
func TestIndexFollowsTheEnd(t *testing.T) {
	longer := make([]uint64, 14)
	for i := range longer {
		longer[i] = uint64(i + 1)
	}
	cases := []struct {
		name string
		fly  func(f *Flight)
		out  Outcome
		want int // blocks on e0 in the end
	}{
		{"complete", func(f *Flight) { f.Tokens(t0, 1) }, Outcome{Cause: fleet.Complete, Usage: silent}, 10},
		{"with the answer", func(f *Flight) { f.Tokens(t0, 1) }, Outcome{Cause: fleet.Complete, Usage: silent, Blocks: longer}, 14},
		{"corrected", func(f *Flight) { f.Tokens(t0, 1) }, Outcome{Cause: fleet.Complete, Usage: Usage{Prompt: features.Unknown, Cached: 256, Output: 1}}, 4},
		{"corrected by the reported length", func(f *Flight) { f.Tokens(t0, 1) }, Outcome{Cause: fleet.Complete, Usage: Usage{Prompt: 320, Cached: 256, Output: 1}}, 8},
		{"failed before the first token", func(*Flight) {}, Outcome{Cause: fleet.UpstreamError, Usage: silent}, 0},
		{"gone before the first token", func(*Flight) {}, Outcome{Cause: fleet.ClientGone, Usage: silent}, 0},
		{"gone while streaming", func(f *Flight) { f.Tokens(t0, 1) }, Outcome{Cause: fleet.ClientGone, Usage: silent}, 10},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, fl, _, x := flown(t)
			c.fly(fl)
			fl.Finish(t0, &c.out)
			if got := len(x[1]); got != c.want {
				t.Errorf("%d blocks, want %d", got, c.want)
			}
		})
	}
}

// TestDecisionIsOnRecord: the record of a request carries its decision as it was made.
func TestDecisionIsOnRecord(t *testing.T) {
	_, fl, l, _ := flown(t)
	fl.Status(503)
	fl.Finish(t0.Add(time.Millisecond), &Outcome{Cause: fleet.UpstreamError, Usage: silent})
	fl.Status(200) // too late
	want := features.Observation{
		ID: fl.ID.String(), At: t0, API: fl.req.API, Model: "demo", Endpoint: "e0", Picked: "e0", Policy: "rule", Propensity: 1,
		Blocks: 10, PromptTokens: 640, ExactPrompt: true, CachedTokens: -1, OutputTokens: -1,
		E2E: time.Millisecond, Cause: fleet.UpstreamError, Status: 503,
	}
	if diff := cmp.Diff(want, l.obs[0], comparableClass); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if id, ok := ParseID(l.obs[0].ID); !ok || id != l.ids[0] {
		t.Errorf("the record is of %s, the decision was %s", l.obs[0].ID, l.ids[0])
	}
}

// TestB32RecreatedEndpoint: an endpoint that leaves and comes back under its name and address starts
// from nothing, whatever the requests of its former self do.
func TestB32RecreatedEndpoint(t *testing.T) {
	r, old, l, _ := flown(t)
	f := r.Fleet()
	both := endpoints(2, nil)
	sync := func(list []*fleet.Endpoint) {
		if _, err := f.Sync(t0, list); err != nil {
			t.Fatal(err)
		}
	}
	sync(both[1:])
	sync(endpoints(2, nil))
	fresh := &Flight{}
	r.SetPolicy(rule(func(q *Query, d *Decision) error {
		for i := range q.Snap.States {
			if q.Snap.States[i].Name == "e0" {
				d.Index, d.Propensity = i, 1
			}
		}
		return nil
	}))
	if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, fresh); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		do   func()
		want int32
	}{
		{func() {}, 1},
		{func() { old.Tokens(t0, 1) }, 1},
		{func() { old.Finish(t0, &Outcome{Cause: fleet.Complete, Usage: silent}) }, 1},
		{func() { old.Finish(t0, &Outcome{Cause: fleet.ClientGone, Usage: silent}) }, 1},
		{func() { fresh.Tokens(t0, 1) }, 1},
		{func() { fresh.Finish(t0, &Outcome{Cause: fleet.Complete, Usage: silent}) }, 0},
		{func() { fresh.Finish(t0, &Outcome{Cause: fleet.ClientGone, Usage: silent}) }, 0},
	}
	for i, s := range steps {
		if s.do(); inflight(f)["e0"] != s.want {
			t.Fatalf("step %d: %d in flight, want %d", i, inflight(f)["e0"], s.want)
		}
	}
	if len(l.obs) != 2 || len(f.Leaving(nil)) != 0 {
		t.Errorf("%d records, %d leaving", len(l.obs), len(f.Leaving(nil)))
	}
}

// TestFlightBeforeRouting: every event of a flight that was never routed is a no-op.
func TestFlightBeforeRouting(t *testing.T) {
	var f Flight
	f.Status(200)
	f.Tokens(t0, 1)
	f.Finish(t0, &Outcome{Cause: fleet.Complete})
	if f.Served(addr(0)) || f.Open() || f.First() != 0 {
		t.Error("a flight that was never routed moved")
	}
	f.Reset()
	if f.Open() || f.Decision.Index != -1 {
		t.Error("reset")
	}
}

// comparableClass compares the parts of observations that go-cmp cannot look into.
var comparableClass = cmpopts.EquateComparable(fleet.ClassID{})
