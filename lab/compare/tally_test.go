package compare

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/cluster"
)

func TestHerdIndex(t *testing.T) {
	play := func(engine func(i int) int) float64 {
		h := herd{engines: 4}
		for i := range 80 {
			h.add(time.Duration(i)*100*time.Millisecond, engine(i))
		}
		h.add(9*time.Second, 0) // a second with too few arrivals
		return h.index()
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"spread":  {play(func(i int) int { return i % 4 }), 1.2}, // ten on four: 3 of 10
		"one":     {play(func(int) int { return 2 }), 4},
		"halves":  {play(func(i int) int { return i % 2 }), 2},
		"refused": {play(func(int) int { return -1 }), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	few := herd{engines: 4}
	few.add(0, 1)
	if v := few.index(); !math.IsNaN(v) {
		t.Errorf("one arrival: %v", v)
	}
}

// chain is the hashes of so many blocks of a text.
func chain(text, blocks int) []uint64 {
	c := make([]uint64, blocks)
	for i := range c {
		c[i] = uint64(text*1000 + i)
	}
	return c
}

func TestRecomputedTokens(t *testing.T) {
	var u reuse
	for i, c := range []struct {
		r    cluster.Record
		want int
	}{
		{cluster.Record{PromptTokens: 256, Blocks: chain(1, 16)}, 0},                      // new
		{cluster.Record{PromptTokens: 256, Blocks: chain(1, 16)}, 255},                    // all but the last token was there
		{cluster.Record{PromptTokens: 300, Blocks: append(chain(1, 8), 7, 8, 9, 5)}, 128}, // half of it
		{cluster.Record{PromptTokens: 64, OutputTokens: 64, Blocks: chain(2, 8)}, 0},      // its answer counts as computed
		{cluster.Record{PromptTokens: 200, Blocks: chain(2, 8)}, 128},                     // the next turn
		{cluster.Record{PromptTokens: 256, Blocks: chain(3, 16), CachedTokens: -1}, 0},    // no engine came to it,
		{cluster.Record{PromptTokens: 256, Blocks: chain(3, 16)}, 0},                      // so nothing was computed
		{cluster.Record{PromptTokens: 100}, 0},                                            // shares nothing
	} {
		if got := u.add(&c.r); got != c.want {
			t.Errorf("request %d: %d known, want %d", i, got, c.want)
		}
	}
}

// TestChangedDecisions: requests are the same by their turn in a session, in whatever order they came.
func TestChangedDecisions(t *testing.T) {
	run := func(order []int, engines []int) picks {
		var p picking
		for n, i := range order { // records come in any order
			p.add(&cluster.Record{Number: uint64(n), Class: "chat", Session: fmt.Sprint(i % 3), Node: engines[i]}, i != 0)
		}
		return p.sorted()
	}
	a := run([]int{0, 1, 2, 3, 4, 5}, []int{0, 1, 2, 0, 1, 2})
	b := run([]int{2, 1, 0, 5, 4, 3}, []int{7, 1, 2, 0, 3, -1})
	if share, both := a.changed(b); both != 5 || share != .4 {
		t.Errorf("%v of %d changed; want 0.4 of 5", share, both)
	}
	if share, both := a.changed(a); both != 5 || share != 0 {
		t.Errorf("%v of %d changed against itself", share, both)
	}
	if share, both := a.changed(nil); both != 0 || share != 0 {
		t.Errorf("%v of %d changed against nothing", share, both)
	}
}

// TestMissedCounts: refused, failed and unfinished requests are missed, and are no answers.
func TestMissedCounts(t *testing.T) {
	w := newTally(time.Second, 3*time.Second, 2)
	for _, r := range []cluster.Record{
		{Sent: 0, Node: 0, Cause: fleet.Complete, Met: true, TTFT: time.Hour, E2E: time.Hour}, // warm-up
		{Sent: time.Second, Node: 0, Cause: fleet.Complete, Met: true, TTFT: time.Second, E2E: 2 * time.Second, PromptTokens: 10, CachedTokens: 5, Class: "a"},
		{Sent: time.Second, Node: 1, Cause: fleet.ClientGone, CachedTokens: -1, Class: "b", Preemptions: 2},
		{Sent: time.Second, Node: -1, Cause: fleet.UpstreamError, CachedTokens: -1, Class: "b"},
		{Sent: 3 * time.Second, Node: 0, Cause: fleet.Complete, Met: true}, // after the end
	} {
		w.add(&r)
	}
	r := w.result()
	if r.Requests != 3 || r.Answered != 1 || math.Abs(r.Attainment-1.0/3) > 1e-12 || r.Goodput != .5 || r.Offered != 1.5 || r.Preempted != 2 {
		t.Errorf("%+v", r)
	}
	if r.TTFT.P99 != 1 || r.E2E.Mean != 2 || !math.IsNaN(r.ITL.Mean) || r.Hit != .5 {
		t.Errorf("TTFT %+v, E2E %+v, ITL %+v, hits %v", r.TTFT, r.E2E, r.ITL, r.Hit)
	}
	if r.Classes["a"].Attainment != 1 || r.Classes["b"].Attainment != 0 || math.Abs(r.Fairness()-.5) > 1e-12 {
		t.Errorf("classes %v, fairness %v", r.Classes, r.Fairness())
	}
}
