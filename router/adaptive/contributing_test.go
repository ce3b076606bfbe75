package adaptive_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// What follows is the worked example of CONTRIBUTING.md, "Adding a detector or a scorer to the adaptive policy": a test
// below keeps the two equal, and this file compiles and runs it.

// Preemption is the share of endpoints whose engine has preempted a request since the last sample:
// those ran out of KV cache for what they already had.
type Preemption struct {
	seen map[uint64]float64 // preemptions so far, by instance
}

// Name implements [adaptive.Detector].
func (*Preemption) Name() string { return "preemption" }

// Detect implements [adaptive.Detector].
func (p *Preemption) Detect(s *adaptive.Sample) float64 {
	preempted, known := 0.0, 0.0
	for i := range s.Snap.States {
		st := &s.Snap.States[i]
		if !st.Known.Has(fleet.KnowPreemptions) {
			continue
		}
		if last, ok := p.seen[st.Instance]; ok && st.Preemptions > last {
			preempted++
		}
		p.seen[st.Instance] = st.Preemptions
		known++
	}
	return preempted / known // NaN where no engine tells: no data
}

// ZoneScorer prefers endpoints of the router's own zone: 1 there, 0 elsewhere.
type ZoneScorer struct {
	Zone string
}

// Name implements [router.Scorer].
func (ZoneScorer) Name() string { return "zone" }

// Category implements [router.Scorer].
func (ZoneScorer) Category() router.Category { return router.Affinity }

// Score implements [router.Scorer].
func (z ZoneScorer) Score(q *router.Query, keep []bool, out []float64) {
	for i, k := range keep {
		if k && q.Snap.States[i].Labels["zone"] == z.Zone {
			out[i] = 1
		}
	}
}

func extended() adaptive.Options {
	o := adaptive.Defaults(router.Params{})
	o.Scorers = append(o.Scorers, adaptive.Part{Scorer: ZoneScorer{Zone: "a"}, Part: 1})
	o.Watches = append(o.Watches, adaptive.Watch{
		Detector: &Preemption{seen: map[uint64]float64{}}, Toward: router.Distribution, Gain: 1,
		Up: time.Second, Down: 15 * time.Second, Enter: 0.2, Exit: 0.1, Dwell: 10 * time.Second,
	})
	return o
}

func TestPreemption(t *testing.T) {
	p, err := adaptive.New(extended())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	tick := func(preemptions float64) adaptive.Status {
		now = now.Add(time.Second)
		load := &fleet.Load{At: now, Known: fleet.KnowPreemptions, Preemptions: preemptions}
		p.Tick(now, &fleet.Snapshot{At: now, Slots: 1, States: []fleet.State{{
			Endpoint: &fleet.Endpoint{Name: "e", Labels: map[string]string{"zone": "a"}}, Load: load, Instance: 1,
		}}})
		return p.Status()
	}
	tick(3)
	rest := tick(3)
	after := tick(4)
	if after.Share <= rest.Share || after.Regime != router.Distribution {
		t.Errorf("a preemption moved the share from %v to %v, regime %v", rest.Share, after.Share, after.Regime)
	}
	if w := after.Weights[len(after.Weights)-1]; w.Scorer != "zone" || !(w.Value > 0) {
		t.Errorf("%+v", after.Weights)
	}
	if v := (&Preemption{}).Detect(&adaptive.Sample{Snap: &fleet.Snapshot{}}); !math.IsNaN(v) {
		t.Errorf("without data: %v", v)
	}
}

// TestContributingExample: every Go block of that section of CONTRIBUTING.md stands in this file.
func TestContributingExample(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("contributing_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Adding a detector or a scorer to the adaptive policy")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```go\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of Go: the detector, the scorer and how they are added were there", len(blocks))
	}
	for _, b := range blocks {
		code, _, closed := strings.Cut(b, "```")
		if !closed || strings.TrimSpace(code) == "" || !strings.Contains(string(source), code) {
			t.Errorf("not in contributing_test.go as it stands:\n%s", code)
		}
	}
}

var (
	_ adaptive.Detector = (*Preemption)(nil)
	_ router.Scorer     = ZoneScorer{}
)
