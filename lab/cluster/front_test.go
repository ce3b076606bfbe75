package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/predictive"
)

// looker notes what its router shows it before it routes on.
type looker struct {
	router.Policy
	asked   int
	foreign int32 // most that any engine held of others
	classes map[fleet.ClassID]bool
	said    []float32 // foretold price of the first endpoint
}

func (l *looker) Route(q *router.Query, d *router.Decision) error {
	l.asked++
	for i := range q.Snap.States {
		if n, ok := q.Snap.States[i].Foreign(); ok {
			l.foreign = max(l.foreign, n)
		}
		if l.classes == nil {
			l.classes = map[fleet.ClassID]bool{}
		}
		l.classes[q.Snap.States[i].Class] = true
	}
	if f := q.Forecasts(); f != nil {
		l.said = append(l.said, f[0].Price.Gap)
	}
	return l.Policy.Route(q, d)
}

func predictiveLooker(t *testing.T) *looker {
	t.Helper()
	p, err := predictive.Recipes().New("predictive", router.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return &looker{Policy: p}
}

func learner() *predictor.Learner {
	return predictor.NewLearner(predictor.Options{Without: predictor.Without{Trees: true}})
}

// even is requests of one size, ten a second and engine.
func even(n, engines int) *Slice {
	src := &Slice{}
	for i := range n {
		src.Jobs = append(src.Jobs, Job{
			At: time.Duration(i) * 100 * time.Millisecond / time.Duration(engines), PromptTokens: 500 + 37*(i%17), OutputTokens: 40 + i%60,
			SLO: request.SLO{TTFT: time.Second},
		})
	}
	return src
}

// TestPeersKnowOnlyTheirOwn: of two routers each gets about half of the requests, sees the other's
// only on the engines' pages, and equal seeds give equal runs.
func TestPeersKnowOnlyTheirOwn(t *testing.T) {
	play := func(seed uint64) ([]Record, *looker, *looker) {
		a, b := predictiveLooker(t), predictiveLooker(t)
		recs, _ := records(t, Config{
			Nodes: h100s(t, 2), Policy: a, Learner: learner(), Seed: seed,
			Peers: []Peer{{Policy: b, Learner: learner()}},
		}, even(400, 2))
		return recs, a, b
	}
	recs, a, b := play(1)
	if a.asked+b.asked != 400 || a.asked < 150 || b.asked < 150 {
		t.Errorf("%d and %d requests of 400", a.asked, b.asked)
	}
	if a.foreign < 3 || b.foreign < 3 {
		t.Errorf("the routers see at most %d and %d requests of the other", a.foreign, b.foreign)
	}
	again, _, _ := play(1)
	if diff := cmp.Diff(recs, again); diff != "" {
		t.Errorf("another run with the same seed differs: %s", diff)
	}
	other, _, _ := play(2)
	if cmp.Equal(recs, other) {
		t.Error("another seed deals the same")
	}
	alone := predictiveLooker(t)
	records(t, Config{Nodes: h100s(t, 2), Policy: alone, Learner: learner()}, even(400, 2))
	if alone.foreign > 1 {
		t.Errorf("a router alone sees %d requests of others", alone.foreign)
	}
}

// TestLateLabels: with labels an hour late forecasts are those of the prior to the end; with labels
// 2 s late they are, for 2 s, and then they are not.
func TestLateLabels(t *testing.T) {
	play := func(delay time.Duration) []float32 {
		l := predictiveLooker(t)
		records(t, Config{Nodes: h100s(t, 1), Policy: l, Learner: learner(), LabelDelay: delay}, even(200, 1))
		return l.said
	}
	never, late, now := play(time.Hour), play(2*time.Second), play(0)
	same := func(a, b []float32) int {
		for i := range a {
			if a[i] != b[i] {
				return i
			}
		}
		return len(a)
	}
	if n := same(never, late); n < 20 || n > 40 {
		t.Errorf("labels 2 s late are first seen at decision %d, want one of the first after 20", n)
	}
	if n := same(never, now); n >= same(never, late) {
		t.Errorf("labels at once are first seen at decision %d", n)
	}
}

// TestUntaught: a learner that is taught no time foretells by its prior to the end, but knows how long
// answers are.
func TestUntaught(t *testing.T) {
	for _, untaught := range []bool{false, true} {
		know := learner()
		records(t, Config{Nodes: h100s(t, 1), Policy: predictiveLooker(t), Learner: know, Untaught: untaught}, even(200, 1))
		taught, s := know.Counts.First+know.Counts.Gap+know.Counts.Steps, know.Save().Classes[0]
		if (taught == 0) != untaught {
			t.Errorf("untaught %v: %d times learned", untaught, taught)
		}
		if s.Answer > 100 { // from a prior of 300, with answers of 40 to 100
			t.Errorf("untaught %v: answers of %.0f tokens expected", untaught, s.Answer)
		}
	}
}

// TestUnlabelled: endpoints of two GPU types are of one class when nothing tells their type.
func TestUnlabelled(t *testing.T) {
	nodes := append(h100s(t, 1), fleetOf(t, 1, "A100", "llama-3.1-8b")...)
	for _, unlabelled := range []bool{false, true} {
		l := predictiveLooker(t)
		records(t, Config{Nodes: nodes, Policy: l, Learner: learner(), Unlabelled: unlabelled}, even(20, 2))
		want := 2
		if unlabelled {
			want = 1
		}
		if len(l.classes) != want {
			t.Errorf("unlabelled %v: %d classes, want %d", unlabelled, len(l.classes), want)
		}
	}
}

func TestImpossiblePeers(t *testing.T) {
	for want, c := range map[string]Config{
		"router 2: no policy": {Peers: []Peer{{}}},
		"a delay is negative": {LabelDelay: -1},
	} {
		c.Nodes, c.Policy = h100s(t, 1), weighted(t)
		if _, err := Run(c, &Slice{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
