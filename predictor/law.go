package predictor

import (
	"math"

	"github.com/presage-router/presage/features"
)

// Law is the physical law of one class, linear in its coefficients:
//
//	step = Phi0 + Phi1*streams + Phi2*context
//	TTFT = Theta0 + Theta1*tokens + Theta2*attention + Theta3*steps*step
//
// where tokens and attention are those still to be prefilled ahead of and by the request, and steps
// is how many engine steps that takes. Seconds, tokens, token^2.
type Law struct {
	Theta  [4]float64 // seconds, seconds per token, seconds per token^2, steps per step
	Phi    [3]float64 // seconds, seconds per stream, seconds per context token
	Budget float64    // tokens that one engine step computes at most (max_num_batched_tokens)
}

// GenericLaw is the prior of a class about which nothing is known: an 8B model on an accelerator of
// the middle range.
func GenericLaw() Law {
	return Law{
		Theta:  [4]float64{10e-3, 40e-6, 1.5e-9, 1},
		Phi:    [3]float64{12e-3, 25e-6, 50e-9},
		Budget: 8192,
	}
}

// scale is the correction of one endpoint: factors on the law of its class.
type scale struct {
	step  float64 // on everything the engine computes
	first float64 // on TTFT, beyond step
}

var unscaled = scale{1, 1}

// workload is a request on an endpoint in the terms of the law.
type workload struct {
	u, att   float64 // uncached tokens of the request and their attention work
	q, qAtt  float64 // the same of the pending requests, less the oldest one's progress
	steps    float64 // engine steps until the first token
	streams  float64
	context  float64
	overdue  float64 // seconds: the oldest pending request is this much later than the law explains
	kvShort  float64 // tokens that must be freed before the request is admitted
	kvUsed   float64 // tokens held now
	rho      float64 // share of wall time spent on prefill
	mid      float64 // context half-way through the answer
	together float64 // streams then
	answer   float64 // expected tokens of the answer
}

const (
	maxRho      = 0.8
	maxProgress = 0.9
	lateAfter   = 2.0 // times its own forecast after which a pending request is overdue
	lateShare   = 0.5 // of the excess that is expected to come on top
	minKV       = 0.01
)

// flow is what passes through an endpoint: what a router can know of its future.
type flow struct {
	answer  float64 // expected tokens of an answer, on any endpoint of the model
	context float64 // mean context of a stream there, or in the class while there is none; 0: not known yet
}

// ahead is the context of the streams half-way through an answer that begins now. Half of today's
// streams, the younger ones, will still be there and longer by half an answer; the others will have
// been replaced by streams like those that pass there. Today's context alone would call an endpoint of
// young streams lightly loaded and one of old streams, about to end, heavily; and the mean of all
// endpoints would call those that get long prompts lightly loaded, so that they get still more.
func (f flow) ahead(context, streams float64) float64 {
	if f.context <= 0 {
		return context
	}
	return 0.5*(context+streams*f.answer/2) + 0.5*streams*f.context
}

// read puts a vector in the terms of the law, with what it says of the request ahead.
func (l *Law) read(x *features.Vector, sc scale, fl flow) (w workload) {
	n := x.At(features.Prompt)
	w.u = x.At(features.Uncached)
	w.att = w.u * (n - w.u/2) // u*(c+u/2), c = n-u
	w.streams, w.context = x.At(features.Streams), x.At(features.Context)
	w.q, w.qAtt = x.At(features.PendingUncached), x.At(features.PendingAttention)
	step := l.step(sc, w.streams, w.context)
	if w.q > 0 || x.At(features.Pending) > 0 {
		head := x.At(features.HeadUncached)
		expect := sc.first * (l.Theta[0] + sc.step*l.Theta[1]*head + l.Theta[3]*1.5*step)
		waited := x.At(features.HeadAge)
		if w.q > 0 {
			done := head * min(maxProgress, waited/max(expect, 1e-4))
			w.qAtt *= 1 - done/w.q
			w.q -= done
		}
		w.overdue = lateShare * max(0, waited-lateAfter*expect)
	}
	w.steps = 1.5 + math.Ceil((w.q+w.u)/max(l.Budget, 1))
	load := l.Theta[1]*x.At(features.PrefillLoad) + l.Theta[2]*x.At(features.AttentionLoad)
	w.rho = min(maxRho, max(0, sc.step*load))
	pending, ahead := x.At(features.Pending), x.At(features.PendingPrompt)
	answer := fl.answer
	w.answer = answer
	w.together = w.streams + pending + 1
	w.mid = fl.ahead(w.context, w.streams) + ahead + n + answer/2
	capacity := x.At(features.KVTokens)
	if usage := float64(x[features.KVUsage]); capacity > 0 && usage == usage {
		w.kvUsed = max(usage, minKV) * capacity
		w.kvShort = max(0, w.kvUsed+x.At(features.PendingUncached)+w.u+answer/2*(pending+1)-capacity)
	}
	return w
}

// step is the time of one decode step.
func (l *Law) step(sc scale, streams, context float64) float64 {
	return sc.step * (l.Phi[0] + l.Phi[1]*streams + l.Phi[2]*context)
}

// first is the time to the first token, waiting for KV blocks aside.
func (l *Law) first(sc scale, w *workload) float64 {
	row := l.row(sc, w)
	return sc.first*(l.Theta[0]*row[0]+l.Theta[1]*row[1]*1e3+l.Theta[2]*row[2]*1e6+l.Theta[3]*row[3]) + w.overdue
}

// row is the regression row of TTFT: 1, thousands of tokens, millions of token^2, seconds of steps.
func (l *Law) row(sc scale, w *workload) [4]float64 {
	return [4]float64{1, sc.step * (w.q + w.u) / 1e3, sc.step * (w.qAtt + w.att) / 1e6, w.steps * l.step(sc, w.streams, w.context)}
}

// wait is the time until enough KV blocks are free, at the rate at which answers end.
func (l *Law) wait(sc scale, w *workload) float64 {
	if w.kvShort <= 0 {
		return 0
	}
	return w.kvShort / w.kvUsed * w.answer * l.step(sc, w.streams, w.context)
}

// prefill is the work that the request adds.
func (l *Law) prefill(sc scale, w *workload) float64 {
	return sc.first * sc.step * (l.Theta[1]*w.u + l.Theta[2]*w.att)
}

// gap is the expected mean gap of the answer, half-way through it, under prefill interference.
func (l *Law) gap(sc scale, w *workload) float64 {
	return l.step(sc, w.together, w.mid) / (1 - w.rho)
}
