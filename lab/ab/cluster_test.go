package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/report"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/experiment"
)

// sink writes every record of a run, as the trace of a service does.
type sink struct {
	w   *observations.Writer
	err error
}

func (s *sink) Observe(o *features.Observation) {
	if err := s.w.Write(o); err != nil && s.err == nil {
		s.err = err
	}
}

// live runs an experiment on simulated engines, three H100 and an A100, and exports its log.
func live(t *testing.T, o experiment.Options, seconds int) string {
	t.Helper()
	e, err := experiment.New(o)
	must(t, err)
	table, err := engine.Builtin()
	must(t, err)
	var nodes []cluster.Node
	for _, gpu := range []string{"H100", "H100", "H100", "A100"} {
		c, err := table.Find(gpu, "llama-3.1-8b", 0, "")
		must(t, err)
		nodes = append(nodes, cluster.Node{Engine: engine.Config{Coefs: *c}})
	}
	src := &cluster.Slice{}
	rng := rand.New(rand.NewPCG(6, 6))
	for at := time.Duration(0); at < time.Duration(seconds)*time.Second; at += time.Duration(rng.ExpFloat64() * 160 * float64(time.Millisecond)) {
		src.Jobs = append(src.Jobs, cluster.Job{
			At: at, Session: fmt.Sprint("s", rng.IntN(2000)), PromptTokens: 500 + rng.IntN(5000), OutputTokens: 20 + rng.IntN(60),
			SLO: request.SLO{TTFT: 400 * time.Millisecond},
		})
	}
	path := filepath.Join(t.TempDir(), "log.parquet")
	w, err := observations.Create(path)
	must(t, err)
	defer w.Abort()
	s := &sink{w: w}
	cfg := cluster.Config{Nodes: nodes, Policy: e, Observer: s, Seed: 1, Learner: predictor.NewLearner(predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}})}
	_, err = cluster.Run(cfg, src, func(*cluster.Record) {})
	must(t, err)
	must(t, s.err)
	must(t, w.Commit())
	return path
}

func policy(t *testing.T, name string) router.Policy {
	t.Helper()
	p, err := baseline.Policies().New(name, router.Params{Seed: 1})
	must(t, err)
	return p
}

// TestFromRouterToReport: a switchback of the least-request rule, which explores, against sending all to
// two engines, from the router's decisions over the exported log to what is said of it.
func TestFromRouterToReport(t *testing.T) {
	least, err := experiment.NewExplorer(policy(t, "least-request"), 0.2)
	must(t, err)
	path := live(t, experiment.Options{
		Unit: experiment.ByBlock, Length: 30 * time.Second, Washout: 4 * time.Second, Seed: 2,
		Arms: []experiment.Arm{{Name: "least-request", Share: 0.5, Policy: least}, {Name: "narrow", Share: 0.5, Policy: narrow{}}},
	}, 30*34)
	wash := 4 * time.Second
	r, err := Read(t.Context(), []string{path}, Options{Washout: &wash, Control: "narrow"}, nil)
	must(t, err)
	if r.Unit != "block" || r.Block != 30 || r.Turnover <= 0 || r.Paired[0].N < 14 || r.Washed < r.Requests/10 {
		t.Fatalf("%+v", r)
	}
	v := r.Verdicts[0]
	t.Log(v.Sentence, v.More)
	for _, c := range r.Checks {
		t.Logf("%v %s: %s", c.OK, c.Name, c.About)
	}
	if v.Kind != report.Switch || !strings.HasPrefix(v.Sentence, "Switch to least-request") {
		t.Errorf("%+v", v)
	}
	means := map[string]report.Interval{}
	for _, e := range r.Off {
		t.Logf("%s, %s: %+v, n %d, ess %.2f, largest %.2f", e.Target, e.Method, e.TTFT, e.N, float64(e.ESS), float64(e.MaxWeight))
		if e.Arm != "least-request" {
			t.Errorf("%+v", e)
		}
		means[e.Method+e.Target] = e.TTFT
	}
	snips, robust := means["SNIPS"+evenly.String()], means["doubly robust"+evenly.String()]
	if len(r.Off) != 5 || math.Abs(float64(snips.Mean-robust.Mean)) > float64(snips.High-snips.Low) {
		t.Errorf("%+v", r.Off)
	}
	if c := r.Comparison(0, report.Method{}); len(c.Live.Calendar) != r.Arms["narrow"].Blocks+r.Arms["least-request"].Blocks {
		t.Errorf("a calendar of %d blocks", len(c.Live.Calendar))
	}
}

// TestSessionsFromRouterToReport: sessions are recognised by their hashes, and no claim is made.
func TestSessionsFromRouterToReport(t *testing.T) {
	path := live(t, experiment.Options{
		Unit: experiment.BySession, Seed: 2,
		Arms: []experiment.Arm{{Name: "least-request", Share: 0.5, Policy: policy(t, "least-request")}, {Name: "again", Share: 0.5, Policy: policy(t, "least-request")}},
	}, 300)
	r, err := Read(t.Context(), []string{path}, Options{}, nil)
	must(t, err)
	if r.Unit != "session" || !strings.Contains(r.Verdicts[0].Sentence, "share queues") || r.Control != "again" || r.check("A/A").Known && !r.check("A/A").OK {
		t.Errorf("%+v", r)
	}
}

// narrow sends everything to the last two engines, in turn.
type narrow struct{}

func (narrow) Name() string { return "narrow" }

func (narrow) Route(q *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = 2+int(q.Tie&1), 1
	return nil
}
