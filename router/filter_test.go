package router

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

func filtered(f Filter, q *Query) []bool {
	keep := slices.Clone(q.Keep)
	f.Filter(q, keep)
	return keep
}

func TestFilterRules(t *testing.T) {
	adapter := &request.Request{Adapter: "a"}
	cases := []struct {
		name   string
		filter Filter
		req    *request.Request
		set    func(i int, s *fleet.State)
		want   []bool
	}{
		{"queue above the limit", QueueFilter{Max: 5}, prompt(64),
			func(i int, s *fleet.State) { s.Waiting = []int32{5, 6, 0}[i] }, []bool{true, false, true}},
		{"queue limit of zero is a limit", QueueFilter{Max: 0}, prompt(64),
			func(i int, s *fleet.State) { s.Waiting = []int32{0, 1, 2}[i] }, []bool{true, false, false}},
		{"queue unknown or old passes", QueueFilter{Max: 5}, prompt(64),
			func(i int, s *fleet.State) {
				s.Waiting = 100
				switch i {
				case 0:
					s.Known = 0
				case 1:
					s.At = t0.Add(-time.Minute)
				}
			}, []bool{true, true, false}},
		{"queue may leave nobody", QueueFilter{Max: 5}, prompt(64),
			func(_ int, s *fleet.State) { s.Waiting = 100 }, []bool{false, false, false}},
		{"kv above the limit", KVFilter{Max: 0.8}, prompt(64),
			func(i int, s *fleet.State) { s.KVUsage = []float32{0.5, 0.81, 1}[i] }, []bool{true, false, false}},
		{"kv that is no number passes", KVFilter{Max: 0.8}, prompt(64),
			func(_ int, s *fleet.State) { s.KVUsage = float32(math.NaN()) }, []bool{true, true, true}},
		{"adapter held wins", LoRAFilter{}, adapter,
			func(i int, s *fleet.State) {
				s.MaxLoRA = 4
				s.WaitingLoRA = [][]string{{"a"}, {"b"}, {}}[i]
			}, []bool{true, false, false}},
		{"adapter room is next", LoRAFilter{}, adapter,
			func(i int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA = int32(i), []string{"b"} }, []bool{false, false, true}},
		{"adapter nowhere and no room keeps all", LoRAFilter{}, adapter,
			func(_ int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA = 1, []string{"b"} }, []bool{true, true, true}},
		{"no adapter keeps all", LoRAFilter{}, prompt(64),
			func(i int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA = int32(i), []string{"b"} }, []bool{true, true, true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := newQuery(c.req, states(3)...)
			for i := range q.Snap.States {
				c.set(i, &q.Snap.States[i])
			}
			if diff := cmp.Diff(c.want, filtered(c.filter, q)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestB24AllEndpointsStale: a stale endpoint gets nothing while others are fresh, and everything
// when nobody is: old information slows requests down but never stops them.
func TestB24AllEndpointsStale(t *testing.T) {
	for stale := range 4 {
		q := newQuery(prompt(64), states(3)...)
		for i := range q.Snap.States {
			switch {
			case i >= stale:
			case i == 1:
				q.Snap.States[i].Load = &fleet.Load{} // never scraped
			default:
				q.Snap.States[i].At = t0.Add(-time.Hour)
			}
		}
		p := profile(t, ProfileSpec{Scorers: weights("prefix", nil, "queue", nil, "kv", nil)})
		for range 100 {
			d := decide(t, p, q)
			if stale < 3 && d.Index < stale {
				t.Fatalf("%d stale: picked %d", stale, d.Index)
			}
			for i, why := range d.Why.Filtered {
				if want := stale < 3 && i < stale; (why == "stale") != want {
					t.Fatalf("%d stale: endpoint %d is left out by %q", stale, i, why)
				}
			}
		}
	}
	// A pool of one stays in use however long its page has been missing.
	q := newQuery(prompt(64), state("only"))
	q.Snap.States[0].At = t0.Add(-time.Hour)
	if d := decide(t, profile(t, ProfileSpec{Scorers: weights("queue", nil)}), q); d.Index != 0 || d.Why.Reason != OnlyOne {
		t.Fatalf("index %d, reason %s", d.Index, d.Why.Reason)
	}
}

// TestFiltersOnlyTakeOut: no filter turns a non-candidate into one, and the lenient ones never leave
// nobody.
func TestFiltersOnlyTakeOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		for _, f := range []Filter{FreshFilter{}, LoRAFilter{}, QueueFilter{Max: 5}, KVFilter{Max: 0.8}} {
			keep, left := filtered(f, q), 0
			for i, k := range keep {
				if k && !q.Keep[i] {
					t.Fatalf("%s lets %d in", f.Name(), i)
				}
				if k {
					left++
				}
			}
			if lenient := f.Name() == "stale" || f.Name() == "adapter"; lenient && left == 0 {
				t.Fatalf("%s leaves nobody", f.Name())
			}
		}
	})
}
