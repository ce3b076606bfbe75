package demo

import (
	"math"
	"sync"

	"github.com/presage-router/presage/features"
)

// Accuracy sums up how far the service's forecasts were off. Figures are NaN where nothing was compared.
type Accuracy struct {
	TTFT, ITL  float64 // mean errors of the medians, relative to what happened
	Coverage90 float64 // share of times, of both kinds, within their 90 % quantile
	Compared   int     // requests
}

// audit compares forecasts with what happened. It is a router.Observer, for one policy's run.
type audit struct {
	mu   sync.Mutex
	seen []audited // in the order in which requests ended
}

// audited are the two times of one request.
type audited [2]struct {
	err    float64 // NaN: nothing to compare
	within bool
}

// Observe implements router.Observer.
func (a *audit) Observe(o *features.Observation) {
	if !o.Comparable() || !o.Fore.TTFT.Known() {
		return
	}
	var c audited
	for i, t := range [2]struct {
		p      *features.Prediction
		actual float64
	}{{&o.Fore.TTFT, o.TTFT.Seconds()}, {&o.Fore.ITL, o.ITL.Seconds()}} {
		c[i].err = math.NaN()
		if t.p.Known() && t.actual > 0 {
			c[i].err = math.Abs(float64(t.p.P50)-t.actual) / t.actual
			c[i].within = t.actual <= float64(t.p.P90)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, c)
}

// learned are the requests that count: the first third is for learning, as in presage-train eval.
func (a *audit) learned() []audited {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[len(a.seen)/3 : len(a.seen) : len(a.seen)]
}

// accuracy sums up.
func accuracy(all []audited) Accuracy {
	var sum, n [2]float64
	var within float64
	for i := range all {
		for t, c := range all[i] {
			if c.err == c.err {
				sum[t] += c.err
				n[t]++
				if c.within {
					within++
				}
			}
		}
	}
	return Accuracy{TTFT: ratio(sum[0], n[0]), ITL: ratio(sum[1], n[1]), Coverage90: ratio(within, n[0]+n[1]), Compared: len(all)}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
