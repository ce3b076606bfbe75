package predictor

import (
	"fmt"
	"math"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/drift"
	"github.com/presage-router/presage/predictor/ridge"
)

// class learns what endpoints of one class share.
type class struct {
	id      fleet.ClassID
	prior   Law
	theta   *ridge.Model // of Law.Theta, in seconds, thousands and millions
	phi     *ridge.Model // of Law.Phi and the share of prefill in mixed steps
	steps   int          // windows of token counting learned
	answer  *float64     // expected tokens of an answer, shared by the classes of a model
	context fading       // mean context of a stream
	trust   fading
	targets [targets]target
	refit   [targets]time.Time // not before
	dirty   bool

	reach     [targets]reach // of theta and phi
	endpoints int            // that were met and not replaced

	alarms    [targets]*drift.Class
	unsettled [targets]int // labels until a change of the class is taken as learned
	drifts    int          // changes of the class
}

const (
	lawForget    = 0.9998
	stepForget   = 0.9995
	lawNoise     = 0.05
	stepNoise    = 0.01
	lawDoubt     = 0.5 // prior deviation of a coefficient, relative to its mean
	lawClip      = 0.4
	answerGain   = 0.02
	trustKeep    = 0.99
	contextKeep  = 0.99
	minTheta1    = 1e-6 // seconds per token: a million tokens per second
	minPhi0      = 1e-4
	minPhi       = 0
	trustedShare = 0.9
)

func newClass(id fleet.ClassID, prior Law) *class {
	first := firstAnswer
	c := &class{id: id, prior: prior, answer: &first}
	th, ph := prior.Theta, prior.Phi
	c.theta = mustRidge(
		[]float64{th[0], th[1] * 1e3, th[2] * 1e6, th[3]},
		ridge.Params{Forget: lawForget, Noise: lawNoise, Clip: lawClip, Floor: 0.03})
	c.phi = mustRidge(
		[]float64{ph[0], ph[1], ph[2] * 1e3, th[1] * 1e3},
		ridge.Params{Forget: stepForget, Noise: stepNoise, Clip: lawClip, Floor: 1e-3})
	for t := range c.targets {
		c.targets[t] = newTarget(t)
		var err error
		if c.alarms[t], err = drift.NewClass(alarmWindow); err != nil {
			panic(fmt.Sprintf("predictor: constants: %v", err))
		}
	}
	return c
}

func mustRidge(mean []float64, p ridge.Params) *ridge.Model {
	sd := make([]float64, len(mean))
	for i, m := range mean {
		sd[i] = lawDoubt * m
	}
	m, err := ridge.New(mean, sd, p)
	if err != nil {
		panic(fmt.Sprintf("predictor: law %v: %v", mean, err))
	}
	return m
}

// law is the law as learned, held to what is physically possible.
func (c *class) law() Law {
	th, ph := c.theta.Theta(), c.phi.Theta()
	return Law{
		Theta:  [4]float64{max(th[0], 0), max(th[1]/1e3, minTheta1), max(th[2]/1e6, 0), max(th[3], 0)},
		Phi:    [3]float64{max(ph[0], minPhi0), max(ph[1], minPhi), max(ph[2]/1e3, minPhi)},
		Budget: c.prior.Budget,
	}
}

// flow is what passes through the endpoints of the class.
func (c *class) flow() flow {
	f := flow{answer: max(*c.answer, 1)}
	if v := c.context.mean(); v == v {
		f.context = v
	}
	return f
}

// learnFirst teaches the law one TTFT, known at now. It returns the alarm that it raises.
func (c *class) learnFirst(s *slot, x *features.Vector, y float64, now time.Time, without *Without) drift.Direction {
	law := c.law()
	sc := s.scale(without)
	w := law.read(x, sc, c.flow())
	if w.overdue > 0 || w.kvShort > 0 {
		return drift.None // what the law does not explain must not bend it
	}
	row := law.row(sc, &w)
	said := law.first(sc, &w)
	said *= c.reach[TTFT].scale(c.theta, math.Log(y/said))
	c.theta.Learn(row[:], y/sc.first)
	if s == nil {
		return drift.None
	}
	return s.first.learn(math.Log(y/said), firstGain, 20, now)
}

// learnGap teaches the law the mean gap of an answer, while no token counting does it better.
func (c *class) learnGap(x *features.Vector, y float64) {
	if c.steps > 0 {
		return
	}
	law := c.law()
	w := law.read(x, unscaled, c.flow())
	row := [4]float64{1, w.together, w.mid / 1e3, 0}
	c.phi.Learn(row[:], y*(1-w.rho))
}

// learnAnswer takes what the end of an answer tells beyond its times.
func (c *class) learnAnswer(o *features.Observation) {
	if o.OutputTokens > 0 {
		*c.answer += answerGain * (float64(min(o.OutputTokens, 1<<20)) - *c.answer)
	}
	believed := o.HitTokens
	if believed > 0 && o.CachedTokens >= 0 && o.ExactPrompt {
		c.trust.add(min(1, float64(o.CachedTokens)/float64(believed)), trustKeep)
	}
}

func (c *class) freeze(slots []slot) *frozenClass {
	f := &frozenClass{id: c.id, law: c.law(), prior: c.prior, flow: c.flow(), trust: 1, sigma: c.sigma(slots)}
	if v := c.trust.mean(); v == v && v < 0.995 {
		f.trust = v
	}
	for t := range c.targets {
		c.targets[t].freeze(&f.targets[t])
	}
	return f
}

// sigma is the standard deviation of the log errors between endpoints: what is left of each one's
// mean error once the law and its corrections have spoken.
func (c *class) sigma(slots []slot) float64 {
	var n, sum, squares float64
	for i := range slots {
		s := &slots[i]
		if s.class == c && s.first.n >= 10 {
			n++
			sum += s.first.left.mean()
			squares += s.first.left.mean() * s.first.left.mean()
		}
	}
	if n < 2 {
		return firstSigma
	}
	return math.Sqrt(max(0, squares/n-sum/n*sum/n) * n / (n - 1))
}
