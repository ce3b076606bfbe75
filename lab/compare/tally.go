package compare

import (
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
)

// tally adds up the records of a run.
type tally struct {
	warmup, until  time.Duration
	requests, met  int
	answered       int
	ttft, itl, e2e []float64
	tokens         int
	prompt, cached float64
	recomputed     float64
	preempted      int
	engines        []float64
	classes        map[string]*count
	tenants        map[string]*count
	reuse          reuse
	herd           herd
	picks          picking
}

// count is how many of some requests kept their SLOs.
type count struct{ requests, met int }

func (c *count) share() float64 { return float64(c.met) / float64(c.requests) }

func newTally(warmup, until time.Duration, engines int) *tally {
	return &tally{
		warmup: warmup, until: until, engines: make([]float64, engines),
		classes: map[string]*count{}, tenants: map[string]*count{}, herd: herd{engines: engines},
	}
}

func (t *tally) add(r *cluster.Record) {
	known := t.reuse.add(r) // what the warm-up computed is known after it
	counted := r.Sent >= t.warmup && (t.until == 0 || r.Sent < t.until)
	t.picks.add(r, counted)
	if !counted {
		return
	}
	t.requests++
	countIn(t.classes, r.Class, r.Met)
	if r.Tenant != "" {
		countIn(t.tenants, r.Tenant, r.Met)
	}
	if r.Met {
		t.met++
	}
	t.herd.add(r.Sent-t.warmup, r.Node)
	if r.Node >= 0 {
		t.engines[r.Node]++
	}
	t.tokens += r.OutputTokens
	t.preempted += r.Preemptions
	if r.Cause != fleet.Complete {
		return
	}
	t.answered++
	t.ttft, t.e2e = append(t.ttft, r.TTFT.Seconds()), append(t.e2e, r.E2E.Seconds())
	if r.ITL > 0 {
		t.itl = append(t.itl, r.ITL.Seconds())
	}
	if r.CachedTokens >= 0 {
		t.cached += float64(r.CachedTokens)
		t.prompt += float64(r.PromptTokens)
		t.recomputed += float64(max(0, known-r.CachedTokens))
	}
}

func countIn(by map[string]*count, name string, met bool) {
	c := by[name]
	if c == nil {
		c = new(count)
		by[name] = c
	}
	c.requests++
	if met {
		c.met++
	}
}

func (t *tally) result() *Result {
	r := &Result{Requests: t.requests, Classes: map[string]Class{}, Tenants: map[string]float64{}, Changed: math.NaN()}
	if t.requests == 0 {
		return r
	}
	n := float64(t.requests)
	span := (t.until - t.warmup).Seconds()
	r.Attainment, r.Answered = float64(t.met)/n, t.answered
	for name, c := range t.classes {
		r.Classes[name] = Class{Requests: c.requests, Attainment: c.share()}
	}
	for name, c := range t.tenants {
		r.Tenants[name] = c.share()
	}
	if span > 0 {
		r.Offered, r.Goodput, r.Tokens = n/span, float64(t.met)/span, float64(t.tokens)/span
	}
	r.TTFT, r.ITL, r.E2E = timesOf(t.ttft), timesOf(t.itl), timesOf(t.e2e)
	r.Hit = t.cached / t.prompt // NaN where nothing was answered
	r.Recomputed, r.Prompt, r.Preempted = t.recomputed, t.prompt, t.preempted
	r.LoadCV, r.Herd = stat.CV(t.engines), t.herd.index()
	for _, e := range t.engines {
		r.Share = append(r.Share, e/n)
	}
	r.picks = t.picks.sorted()
	return r
}
