package router

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// score runs a scorer over all candidates.
func score(s Scorer, q *Query) []float64 {
	out := make([]float64, len(q.Keep))
	s.Score(q, q.Keep, out)
	return out
}

var approx = cmpopts.EquateApprox(0, 1e-12)

func TestScorerFormulas(t *testing.T) {
	type set func(i int, s *fleet.State)
	cases := []struct {
		name   string
		scorer Scorer
		req    *request.Request
		hits   []int32
		set    set
		want   []float64
	}{
		{"queue is min-max", QueueScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) { s.Waiting = []int32{4, 0, 1}[i] }, []float64{0, 1, 0.75}},
		{"queue all equal is 1", QueueScorer{}, prompt(640), nil,
			func(_ int, s *fleet.State) { s.Waiting = 7 }, []float64{1, 1, 1}},
		{"queue unknown gets the mean of the others", QueueScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) {
				if s.Waiting = []int32{4, 0, 0}[i]; i == 2 {
					s.Known &^= fleet.KnowWaiting
				}
			}, []float64{0, 1, 0.5}},
		{"queue of nobody known", QueueScorer{}, prompt(640), nil,
			func(_ int, s *fleet.State) { s.Known = 0 }, []float64{0, 0, 0}},
		{"queue on an old page is unknown", QueueScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) {
				if s.Waiting = []int32{3, 1, 0}[i]; i == 2 {
					s.At = t0.Add(-DefaultMaxAge - time.Nanosecond)
				}
			}, []float64{0, 1, 0.5}},
		{"queue on a page of exactly the maximum age is known", QueueScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) { s.Waiting, s.At = int32(i), t0.Add(-DefaultMaxAge) }, []float64{1, 0.5, 0}},
		{"running is min-max", RunningScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) { s.Running = []int32{10, 20, 15}[i] }, []float64{1, 0, 0.5}},
		{"kv is what is free", KVScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) { s.KVUsage = []float32{0.25, 1, 0}[i] }, []float64{0.75, 0, 1}},
		{"kv out of range is unknown", KVScorer{}, prompt(640), nil,
			func(i int, s *fleet.State) { s.KVUsage = []float32{0.25, 87, -0.5}[i] }, []float64{0.75, 0.75, 0.75}},
		{"prefix is the cached share", PrefixScorer{}, prompt(640), []int32{10, 5, 0}, nil, []float64{639.0 / 640, 0.5, 0}},
		{"prefix with length weight", PrefixScorer{LengthWeight: 0.5}, prompt(8192), []int32{64, 0, 0}, nil,
			[]float64{0.5*0.25 + 0.5*0.5, 0, 0}},
		{"prefix without text", PrefixScorer{}, &request.Request{}, nil, nil, []float64{0, 0, 0}},
		{"requests", RequestsScorer{MaxBusyScore: 1}, prompt(640), nil,
			func(i int, s *fleet.State) { s.Requests = []int32{0, 1, 4}[i] }, []float64{1, 0.75, 0}},
		{"requests with a threshold", RequestsScorer{IdleThreshold: 1, MaxBusyScore: 0.5}, prompt(640), nil,
			func(i int, s *fleet.State) { s.Requests = []int32{1, 2, 4}[i] }, []float64{1, 0.25, 0}},
		{"tokens count the request's own", TokensScorer{Capacity: 10_000}, prompt(1000), []int32{5, 0, 0},
			func(i int, s *fleet.State) { s.Uncached = []int64{1000, 0, 50_000}[i] }, []float64{1 - 0.168, 0.9, 0}},
		{"lora", LoRAScorer{}, &request.Request{Adapter: "a"}, nil,
			func(i int, s *fleet.State) {
				s.MaxLoRA = 2
				s.RunningLoRA = [][]string{{"a", "b"}, {"b"}, {"b", "c"}}[i]
			}, []float64{1, 0.8, 0}},
		{"lora waiting on a full endpoint", LoRAScorer{}, &request.Request{Adapter: "a"}, nil,
			func(_ int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA, s.WaitingLoRA = 1, []string{"b"}, []string{"a"} },
			[]float64{0.6, 0.6, 0.6}},
		{"lora listed in both states counts once", LoRAScorer{}, &request.Request{Adapter: "a"}, nil,
			func(_ int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA, s.WaitingLoRA = 2, []string{"b"}, []string{"b"} },
			[]float64{0.8, 0.8, 0.8}},
		{"lora without an adapter", LoRAScorer{}, prompt(640), nil,
			func(_ int, s *fleet.State) { s.MaxLoRA, s.RunningLoRA = 2, []string{"b"} }, []float64{0, 0, 0}},
		{"session without one", SessionScorer{}, prompt(640), nil, nil, []float64{0, 0, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := newQuery(c.req, states(3)...)
			copy(q.Hits, c.hits)
			if c.set != nil {
				for i := range q.Snap.States {
					c.set(i, &q.Snap.States[i])
				}
			}
			if diff := cmp.Diff(c.want, score(c.scorer, q), approx); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSessionMovesOnlyWhenItsEndpointLeaves: rendezvous hashing spreads sessions, keeps them, and
// moves only those of the endpoint that is gone.
func TestSessionMovesOnlyWhenItsEndpointLeaves(t *testing.T) {
	const sessions = 4000
	q := newQuery(&request.Request{}, states(5)...)
	home := func() int {
		for i, s := range score(SessionScorer{}, q) {
			if s == 1 && q.Keep[i] {
				return i
			}
		}
		t.Fatal("no home")
		return -1
	}
	count := make([]int, 5)
	for n := range sessions {
		q.Req.Session = "session-" + string(rune('a'+n%26)) + time.Duration(n).String()
		before := home()
		count[before]++
		q.Keep[3] = false
		after := home()
		q.Keep[3] = true
		if before != 3 && after != before {
			t.Fatalf("%s moved from %d to %d though only 3 left", q.Req.Session, before, after)
		}
	}
	for i, n := range count {
		if n < sessions/5*85/100 || n > sessions/5*115/100 {
			t.Errorf("endpoint %d has %d of %d sessions", i, n, sessions)
		}
	}
}

// anyState draws an endpoint in any condition, nonsense from its page included.
func anyState(t *rapid.T, name string) fleet.State {
	s := state(name)
	s.Known = fleet.Known(rapid.Uint16Range(0, uint16(allKnown)).Draw(t, "known"))
	s.At = t0.Add(-rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Second, time.Hour}).Draw(t, "age"))
	s.Waiting = rapid.Int32().Draw(t, "waiting")
	s.Running = rapid.Int32().Draw(t, "running")
	s.KVUsage = rapid.OneOf(rapid.Float32(), rapid.Float32Range(0, 1),
		rapid.SampledFrom([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 1, 1.7, 87})).Draw(t, "kv")
	s.Requests = rapid.Int32Range(0, math.MaxInt32).Draw(t, "requests")
	s.Uncached = rapid.Int64Range(0, 1<<40).Draw(t, "uncached")
	s.MaxLoRA = rapid.Int32Range(-1, 4).Draw(t, "max lora")
	s.RunningLoRA = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "running lora")
	s.WaitingLoRA = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "waiting lora")
	return s
}

// anyQuery draws a query in any condition with at least one candidate.
func anyQuery(t *rapid.T) *Query {
	n := rapid.IntRange(1, 8).Draw(t, "endpoints")
	list := make([]fleet.State, n)
	for i := range list {
		list[i] = anyState(t, string(rune('a'+i)))
	}
	req := prompt(rapid.IntRange(0, 5000).Draw(t, "prompt"))
	req.Adapter = rapid.SampledFrom([]string{"", "a"}).Draw(t, "adapter")
	req.Session = rapid.SampledFrom([]string{"", "s"}).Draw(t, "session")
	q := newQuery(req, list...)
	q.Rand.Uint64()
	for i := range q.Hits {
		q.Hits[i] = int32(rapid.IntRange(0, len(req.Blocks)).Draw(t, "hits"))
		q.Keep[i] = rapid.Bool().Draw(t, "keep")
	}
	q.Keep[rapid.IntRange(0, n-1).Draw(t, "kept")] = true
	return q
}

// TestB18ScoresStayFinite: whatever an engine reports, every score is in [0,1], and one that misses
// its reading is never better than the best of those that have one.
func TestB18ScoresStayFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		for _, s := range scorers {
			out := score(s.make(0), q)
			for i, k := range q.Keep {
				if k && !(out[i] >= 0 && out[i] <= 1) {
					t.Fatalf("%s: endpoint %d scores %v", s.name, i, out[i])
				}
			}
		}
		checkMissing(t, q, QueueScorer{}, waiting)
		checkMissing(t, q, RunningScorer{}, running)
		checkMissing(t, q, KVScorer{}, kvUsage)
	})
}

func checkMissing(t *rapid.T, q *Query, s Scorer, read func(*fleet.State) float64) {
	out := score(s, q)
	best, seen := 0.0, false
	for i, k := range q.Keep {
		if st := &q.Snap.States[i]; k && fresh(st, horizon(q, 0)) && !math.IsNaN(read(st)) {
			best, seen = max(best, out[i]), true
		}
	}
	for i, k := range q.Keep {
		if k && seen && out[i] > best {
			t.Fatalf("%s: endpoint %d scores %v, the best known %v", s.Name(), i, out[i], best)
		}
	}
}

// TestScorersAreFair: a score depends on the endpoint's state, not on its place in the snapshot, and
// endpoints that are no candidates have no influence.
func TestScorersAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		n := len(q.Keep)
		perm := rapid.Permutation(indices(n)).Draw(t, "perm")
		r := newQuery(q.Req, states(n)...)
		for i, j := range perm {
			r.Snap.States[j], r.Hits[j], r.Keep[j] = q.Snap.States[i], q.Hits[i], q.Keep[i]
			if !q.Keep[i] {
				r.Snap.States[j] = anyState(t, "out")
			}
		}
		for _, s := range scorers {
			a, b := score(s.make(0), q), score(s.make(0), r)
			for i, j := range perm {
				if q.Keep[i] && math.Abs(a[i]-b[j]) > 1e-9 {
					t.Fatalf("%s: %v at place %d, %v at place %d", s.name, a[i], i, b[j], j)
				}
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestScorerNamesAndCategories(t *testing.T) {
	affinity := map[string]bool{"prefix": true, "lora": true, "session": true}
	for _, s := range scorers {
		made := s.make(0)
		if made.Name() != s.name {
			t.Errorf("%s is made under the name %s", made.Name(), s.name)
		}
		if got := made.Category() == Affinity; got != affinity[s.name] {
			t.Errorf("%s: category %s", s.name, made.Category())
		}
	}
}
