// Package conformal turns point forecasts into quantiles from the errors that they recently made:
// split conformal prediction over a sliding window (Vovk, Gammerman and Shafer, "Algorithmic
// Learning in a Random World", 2005), with the level steered online so that coverage holds under
// drift (Gibbs and Candès, "Adaptive Conformal Inference Under Distribution Shift", 2021).
//
// Errors are z = log(actual/forecast). They are kept apart by stratum, the number of requests in
// flight in powers of two, since crowded endpoints err differently from idle ones; a stratum with
// few errors borrows from all of them.
package conformal

import (
	"math"
	"math/bits"
	"slices"
)

// Widths are what to add to the logarithm of a point forecast for its quantiles.
type Widths struct {
	P90, P99 float32
	Mean     float32 // of the ratio actual/forecast, not its logarithm
}

// Strata is the number of strata.
const Strata = 8

// Stratum is that of a number of requests in flight: 0, 1, 2-3, 4-7, … 64 and more.
func Stratum(inflight float64) int {
	if !(inflight >= 1) {
		return 0
	}
	return min(bits.Len(uint(min(inflight, 1<<20))), Strata-1)
}

const (
	perStratum = 200 // errors kept of one stratum
	overall    = 500 // errors kept of all
	enough     = 40  // errors of a stratum from which on it speaks for itself
	leastWidth = 0.6 // of the 90 % band, in median errors
	gain       = 0.01
	gainSlow   = 0.002
	bound      = 5.0  // of a kept error: e^5 is a factor of 148
	limit90    = 0.08 // of the correction of a level
	limit99    = 0.009
)

// Bands learns the widths of one target. The zero value is ready: it holds wide prior bands.
type Bands struct {
	all    ring
	strata [Strata]ring
	raise  [Strata]steer
}

// steer is what is added to the nominal levels.
type steer struct{ p90, p99 float64 }

// Learn takes one error, z = log(actual/forecast), of a forecast whose quantiles were w beyond it.
// Errors that are not finite are ignored.
func (b *Bands) Learn(stratum int, z float64, w Widths) {
	if math.IsNaN(z) || math.IsInf(z, 0) || stratum < 0 || stratum >= Strata {
		return
	}
	z = min(max(z, -bound), bound)
	b.all.push(z, overall)
	b.strata[stratum].push(z, perStratum)
	r := &b.raise[stratum]
	r.p90 = toward(r.p90, gain, 0.10, z > float64(w.P90), limit90)
	r.p99 = toward(r.p99, gainSlow, 0.01, z > float64(w.P99), limit99)
}

// toward moves a level by the update of adaptive conformal inference, within a limit.
func toward(level, gain, alpha float64, miss bool, limit float64) float64 {
	e := -alpha
	if miss {
		e = 1 - alpha
	}
	return min(max(level+gain*e, -3*limit), limit)
}

// Widths are those of a stratum now.
func (b *Bands) Widths(stratum int) Widths {
	stratum = min(max(stratum, 0), Strata-1)
	r, s := &b.strata[stratum], b.raise[stratum]
	pool := &b.all
	if r.len() >= enough {
		pool = r
	}
	if pool.len() < enough/2 {
		return Widths{P90: 0.6, P99: 1.5, Mean: 1.1}
	}
	w := Widths{
		P90: float32(max(leastWidth*pool.middle(), pool.quantile(0.90+s.p90))),
		P99: float32(max(0, pool.quantile(0.99+s.p99))),
	}
	w.P99 = max(w.P99, w.P90)
	w.Mean = float32(pool.ratio())
	return w
}

// Len is the number of errors kept.
func (b *Bands) Len() int { return b.all.len() }

// Beyond is the expected ratio actual/forecast given that it exceeds e^z, for labels that are only
// known to be larger; ok is false where too few errors were that large.
func (b *Bands) Beyond(z float64) (ratio float64, ok bool) {
	i, _ := slices.BinarySearch(b.all.sorted, z)
	tail := b.all.sorted[i:]
	if len(tail) < 5 {
		return 0, false
	}
	var sum float64
	for _, v := range tail {
		sum += math.Exp(v)
	}
	return sum / float64(len(tail)), true
}

// ring keeps the last errors, in order of time and of size.
type ring struct {
	times  []float64
	next   int
	sorted []float64
	sum    float64 // of exp(z)
}

func (r *ring) len() int { return len(r.times) }

func (r *ring) push(z float64, size int) {
	if len(r.times) < size {
		r.times = append(r.times, z)
	} else {
		old := r.times[r.next]
		r.times[r.next] = z
		r.next = (r.next + 1) % size
		i, _ := slices.BinarySearch(r.sorted, old)
		r.sorted = slices.Delete(r.sorted, i, i+1)
		r.sum -= math.Exp(old)
	}
	i, _ := slices.BinarySearch(r.sorted, z)
	r.sorted = slices.Insert(r.sorted, i, z)
	r.sum += math.Exp(z)
}

// quantile is the conformal one: the ceil((n+1)q)-th smallest, the largest where there is none.
func (r *ring) quantile(q float64) float64 {
	n := len(r.sorted)
	k := int(math.Ceil(float64(n+1) * q))
	return r.sorted[min(max(k, 1), n)-1]
}

// middle is the median size of an error: a run of errors of one sign, as after a change of load,
// must not make the other side look certain.
func (r *ring) middle() float64 {
	n := len(r.sorted)
	i, _ := slices.BinarySearch(r.sorted, 0)
	// Walk outwards from zero until half of the errors are inside.
	lo, hi := i-1, i
	for range (n + 1) / 2 {
		if lo < 0 || hi < n && r.sorted[hi] <= -r.sorted[lo] {
			hi++
		} else {
			lo--
		}
	}
	var size float64
	if lo+1 < i {
		size = -r.sorted[lo+1]
	}
	if hi > i {
		size = max(size, r.sorted[hi-1])
	}
	return size
}

// ratio is the mean of actual/forecast.
func (r *ring) ratio() float64 { return r.sum / float64(len(r.times)) }
