package foresight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

// Variant is a learner with some part switched off.
type Variant struct {
	Name, About string
	Without     predictor.Without
	// Gauges feeds vectors made of the last metrics page in place of the router's own ledger.
	Gauges bool
	// Deaf learns nothing of requests whose client leaves: what it errs more or less is what they do
	// to the forecasts of those who stay.
	Deaf bool
}

// Whole is the name of the variant with nothing switched off.
const Whole = "whole"

// Variants are all there are, the whole learner first.
func Variants() []Variant {
	return []Variant{
		{Name: Whole, About: "nothing switched off"},
		{Name: "ledger", About: "vectors of scraped gauges, no ledger of the router's own", Gauges: true, Without: predictor.Without{Steps: true}},
		{Name: "shrinkage", About: "corrections of endpoints believed at once and in full", Without: predictor.Without{Shrinkage: true}},
		{Name: "offsets", About: "no corrections of endpoints", Without: predictor.Without{Offsets: true}},
		{Name: "conformal", About: "quantiles at fixed distances", Without: predictor.Without{Bands: true}},
		{Name: "trees", About: "no boosted trees", Without: predictor.Without{Trees: true}},
		{Name: "gaps", About: "step times learned from ended answers alone", Without: predictor.Without{Steps: true}},
		{Name: "drift", About: "no drift detection", Without: predictor.Without{Drift: true}},
		{Name: "cancels", About: "nothing learned of requests whose client leaves", Deaf: true},
	}
}

// Choose returns the whole learner and the named variants.
func Choose(names []string) ([]Variant, error) {
	all := Variants()
	out := all[:1:1]
	var known []string
	for _, v := range all[1:] {
		known = append(known, v.Name)
		if slices.Contains(names, v.Name) {
			out = append(out, v)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("%q: no such part; there are %s", n, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// pupil is a variant at work.
type pupil struct {
	Variant
	*predictor.Learner
	handle predictor.Handle
	batch  predictor.Batch
	news   bool
}

func newPupil(v Variant, o predictor.Options) *pupil {
	o.Without = v.Without
	return &pupil{Variant: v, Learner: predictor.NewLearner(o), news: true}
}

func (p *pupil) publish() {
	if p.news {
		p.handle.Store(p.Freeze())
		p.news = false
	}
}

// tick counts tokens and fits the trees that are due.
func (p *pupil) tick(snap *fleet.Snapshot) error {
	p.Watch(snap)
	p.news = true
	for f := p.Due(snap.At); f != nil; f = p.Due(snap.At) {
		f.Run()
		if err := p.Adopt(f); err != nil {
			return err
		}
	}
	return nil
}

// see is the vector as the variant sees it.
func (p *pupil) see(x *features.Vector) features.Vector {
	if !p.Gauges {
		return *x
	}
	return scraped(x)
}

// scraped keeps the request and the page of a vector, and guesses what a router without a ledger
// must: that what waits in the engine is like this request, and that what its cache holds is the
// context of its streams.
func scraped(x *features.Vector) features.Vector {
	y := *x
	for f := features.Pending; f < features.Waiting; f++ {
		y[f] = 0
	}
	y[features.RecentTTFT], y[features.RecentITL], y[features.StepTime] = unknown, unknown, unknown
	waiting := x.At(features.Waiting)
	u, n := x.At(features.Uncached), x.At(features.Prompt)
	y[features.Pending] = float32(waiting)
	y[features.PendingPrompt] = float32(waiting * n)
	y[features.PendingUncached] = float32(waiting * u)
	y[features.PendingAttention] = float32(waiting * u * (n - u/2))
	y[features.Streams] = float32(x.At(features.Running))
	y[features.Context] = float32(x.At(features.KVUsage) * x.At(features.KVTokens))
	return y
}

var unknown = features.Nothing()[0][0]

// label is what became of one forecast.
type label struct {
	at     time.Duration // of the decision
	class  string
	error  float64 // log of foretold over actual
	within bool    // the 90 % quantile
}
