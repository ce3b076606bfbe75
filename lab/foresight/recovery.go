package foresight

import (
	"time"

	"github.com/presage-router/presage/internal/stat"
)

// Recovery is how the TTFT forecasts of a class recover from a change of all its engines. Errors are
// mean sizes of log errors over 100 labels; the old one is that of the last 1,000 before the change.
type Recovery struct {
	Old   float64 `json:"old"`
	First float64 `json:"first"` // ratio to the old error: labels 1 to 100 after the change
	At300 float64 `json:"at_300"`
	At1k  float64 `json:"at_1000"`
	Worst float64 `json:"worst"` // over the whole learner, the largest over spans of 100: above 1 where this variant is worse
	Count int     `json:"labels"`
}

const step = 100

// recoveries are by class; whole are the labels of the whole learner, of the same requests.
func recoveries(labels, whole []label, at time.Duration) map[string]Recovery {
	out := map[string]Recovery{}
	mine, theirs := byClass(labels), byClass(whole)
	for class, l := range mine {
		k := 0
		for k < len(l) && l[k].at < at {
			k++
		}
		before, since, other := l[max(0, k-1000):k], l[k:], theirs[class][k:]
		if len(before) < step || len(since) < step {
			continue
		}
		r := Recovery{Old: stat.Mean(sizes(before)), Count: len(since)}
		mean := func(l []label, end int) float64 {
			if len(l) < end {
				return 0
			}
			return stat.Mean(sizes(l[end-step : end]))
		}
		r.First, r.At300, r.At1k = mean(since, step)/r.Old, mean(since, 3*step)/r.Old, mean(since, 10*step)/r.Old
		for end := step; end <= len(since); end += step {
			r.Worst = max(r.Worst, mean(since, end)/mean(other, end))
		}
		out[class] = r
	}
	return out
}

func byClass(labels []label) map[string][]label {
	out := map[string][]label{}
	for _, l := range labels {
		out[l.class] = append(out[l.class], l)
	}
	return out
}
