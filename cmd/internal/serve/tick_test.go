package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// follower is a policy that counts its ticks.
type follower struct {
	router.Policy
	ticks, seen atomic.Int64
}

func (f *follower) Tick(_ time.Time, s *fleet.Snapshot) {
	f.ticks.Add(1)
	f.seen.Store(int64(len(s.States)))
}

// TestPoliciesFollowTheFleet: a policy in force that wants to is ticked, and told about the endpoints.
func TestPoliciesFollowTheFleet(t *testing.T) {
	e := newEngine(t, "e1")
	plain, err := newPolicy(testConfig(), "weighted", 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{Policy: plain}
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints(e), Policy: f})
	l.eventually("ticks", func() bool { return f.ticks.Load() >= 2 && f.seen.Load() == 1 })
	if l.metric(`presage_adaptive_weight{scorer="prefix"}`) != "" {
		t.Error("weights of an adaptive policy that is not in force")
	}
	if err := l.SetPolicy("adaptive"); err != nil {
		t.Fatal(err)
	}
	l.eventually("weights", func() bool { return strings.HasPrefix(l.metric(`presage_adaptive_weight{scorer="prefix"}`), "0.") })
}

// TestShadowsFollowTheFleet: an adaptive policy that only shadows is ticked and shown too.
func TestShadowsFollowTheFleet(t *testing.T) {
	c := testConfig()
	c.Shadow = []string{"least-request", "adaptive"}
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	a := adaptive.Of(l.Router().Policy())
	if a == nil {
		t.Fatal("not found")
	}
	l.eventually("weights", func() bool { return l.metric(`presage_adaptive_weight{scorer="prefix"}`) != "" })
}

// TestChangesAreLogged: one line per change, with its reason, what the detectors saw and the weights;
// each once.
func TestChangesAreLogged(t *testing.T) {
	p, err := adaptive.New(adaptive.Defaults(router.Params{}))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	snap := fleet.Snapshot{Slots: 8}
	for i := range 8 {
		snap.States = append(snap.States, fleet.State{Endpoint: &fleet.Endpoint{Name: fmt.Sprint("e", i)}, Load: &fleet.Load{}, Slot: i, Instance: uint64(i + 1)})
	}
	tick := func() {
		now = now.Add(200 * time.Millisecond)
		p.Tick(now, &snap)
	}
	tick()
	snap.States[2].Requests = 300
	for range 20 {
		tick()
	}
	var out bytes.Buffer
	var told toldChanges
	log := slog.New(slog.NewJSONHandler(&out, nil))
	told.tell(log, p)
	var line struct {
		Msg, Reason, Regime string
		Change              int
		Detectors, Old, New map[string]float64
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	if n := int(p.Status().Changes); n == 0 || len(lines) != n {
		t.Errorf("%d lines for %d changes", len(lines), n)
	}
	if line.Msg != "adaptive weights changed" || line.Reason != "imbalance towards distribution; regime affinity -> distribution" ||
		line.Regime != "distribution" || line.Change != 1 || line.Detectors["imbalance"] < 0.5 || line.New["prefix"] >= line.Old["prefix"] {
		t.Errorf("%s", lines[0])
	}
	out.Reset()
	if told.tell(log, p); out.Len() != 0 {
		t.Errorf("told again: %s", out.String())
	}
}
