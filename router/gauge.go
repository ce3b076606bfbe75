package router

import (
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// DefaultMaxAge is the age from which what an engine said about itself counts as unknown.
const DefaultMaxAge = 5 * time.Second

// horizon is the time of the oldest page that counts. A maximum age of 0 means [DefaultMaxAge].
func horizon(q *Query, maxAge time.Duration) time.Time {
	if maxAge == 0 {
		maxAge = DefaultMaxAge
	}
	return q.Now.Add(-maxAge)
}

// fresh reports whether the endpoint was scraped at all, and not before the horizon.
func fresh(s *fleet.State, horizon time.Time) bool {
	return !s.At.Before(horizon) && !s.At.IsZero()
}

// Readings of one endpoint: unknown is NaN, never zero. Values no engine can mean are unknown too.

func waiting(s *fleet.State) float64 { return count(s, fleet.KnowWaiting, s.Waiting) }
func running(s *fleet.State) float64 { return count(s, fleet.KnowRunning, s.Running) }

func count(s *fleet.State, k fleet.Known, v int32) float64 {
	if !s.Known.Has(k) || v < 0 {
		return math.NaN()
	}
	return float64(v)
}

func kvUsage(s *fleet.State) float64 {
	if v := float64(s.KVUsage); s.Known.Has(fleet.KnowKV) && v >= 0 && v <= 1 {
		return v
	}
	return math.NaN()
}

func kvFree(s *fleet.State) float64 { return 1 - kvUsage(s) }

// gauges fills out with a reading of every candidate, NaN where its page is missing or too old.
func gauges(q *Query, keep []bool, maxAge time.Duration, read func(*fleet.State) float64, out []float64) {
	oldest := horizon(q, maxAge)
	for i, k := range keep {
		if !k {
			continue
		}
		out[i] = math.NaN()
		if s := &q.Snap.States[i]; fresh(s, oldest) {
			out[i] = read(s)
		}
	}
}

// minMax turns readings (lower is better, NaN unknown) into scores (max-v)/(max-min), all 1 where
// the known ones are equal: the running min-max of policies.md 1.1.
func minMax(keep []bool, out []float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, k := range keep {
		if v := out[i]; k && v == v {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for i, k := range keep {
		switch {
		case !k || math.IsNaN(out[i]):
		case hi > lo:
			out[i] = (hi - out[i]) / (hi - lo)
		default:
			out[i] = 1
		}
	}
	impute(keep, out)
}

// impute gives candidates whose score is NaN the mean of the others, and all of them 0 where none is
// known: missing data neither attracts nor repels.
func impute(keep []bool, out []float64) {
	sum, known, missing := 0.0, 0, 0
	for i, k := range keep {
		switch {
		case !k:
		case math.IsNaN(out[i]):
			missing++
		default:
			sum += out[i]
			known++
		}
	}
	if missing == 0 {
		return
	}
	mean := sum / float64(max(known, 1))
	for i, k := range keep {
		if k && math.IsNaN(out[i]) {
			out[i] = mean
		}
	}
}
