package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/predictor/drift"
)

// Strata are scores of parts of the forecasts of one target, by name of the part.
type Strata map[string]Score

// strata splits forecasts by load decile, hit or miss, state of the endpoint, and distance from the
// last drift alarm; cold are those before the first counted one.
func strata(pairs, cold []pair) Strata {
	s := Strata{}
	byLoad := slices.Clone(pairs)
	slices.SortStableFunc(byLoad, func(a, b pair) int { return cmp.Compare(a.inflight, b.inflight) })
	for d := range 10 {
		if part := byLoad[d*len(byLoad)/10 : (d+1)*len(byLoad)/10]; len(part) > 0 {
			s[Decile(d+1)] = score(part)
		}
	}
	parts := map[string][]pair{}
	for i := range pairs {
		p := &pairs[i]
		for _, name := range [3]string{hitOrMiss(p), stateOf(p), afterDrift(p)} {
			parts[name] = append(parts[name], *p)
		}
	}
	for name, part := range parts {
		s[name] = score(part)
	}
	if n := min(len(cold), 100); n > 0 {
		s["cold, first 100"] = score(cold[:n])
	}
	return s
}

// Decile is the name of a stratum, 1 to 10: rank of the requests in flight at the decision.
func Decile(d int) string { return fmt.Sprintf("load decile %02d", d) }

func hitOrMiss(p *pair) string {
	if p.hit {
		return "hit"
	}
	return "miss"
}

// stateOf tells how busy the endpoint was: saturated when its engine queued, queued when requests
// waited for their first token, idle when nothing was in flight.
func stateOf(p *pair) string {
	switch {
	case p.x.At(features.Waiting) > 0:
		return "saturated"
	case p.x.At(features.Pending) > 0:
		return "queued"
	case p.inflight > 0:
		return "streaming"
	}
	return "idle"
}

func afterDrift(p *pair) string {
	if p.drifted {
		return "after drift"
	}
	return "steady"
}

// soon is the number of labels after an alarm within which a forecast counts as after drift.
const soon = 300

// markDrift runs the drift detector of each endpoint over the residuals, in the order in which labels
// become known, marks the forecasts made within 300 labels after an alarm, and returns the alarms.
func (fc *forecasts) markDrift() (alarms int) {
	detectors := map[int32]*drift.Detector{}
	var raised []int
	for k, i := range fc.labels {
		p := &fc.pairs[i]
		d := detectors[p.endpoint]
		if d == nil {
			fresh, err := drift.New(drift.Params{})
			if err != nil {
				return 0 // unreachable: defaults are valid
			}
			d = &fresh
			detectors[p.endpoint] = d
		}
		if d.Observe(math.Log(p.actual/float64(p.p.P50))) != drift.None {
			raised = append(raised, k)
		}
	}
	for i := range fc.pairs {
		p := &fc.pairs[i]
		k, _ := slices.BinarySearch(raised, p.known)
		p.drifted = k > 0 && p.known-raised[k-1] <= soon
	}
	return len(raised)
}

// Windows tell how coverage of P90 held from one minute to the next.
type Windows struct {
	Seconds int     `json:"seconds"`
	N       int     `json:"n"` // windows with 20 forecasts or more
	Least   float64 `json:"least"`
	P10     float64 `json:"p10"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	Below75 int     `json:"below75"`
}

const (
	window    = 60 // seconds
	perWindow = 20
)

func windows(pairs []pair) Windows {
	type minute struct{ run, n int }
	parts := map[minute][2]int{}
	for i := range pairs {
		p := &pairs[i]
		if p.at != p.at {
			continue
		}
		key := minute{p.run, int(p.at / window)}
		part := parts[key]
		part[0]++
		if p.actual <= float64(p.p.P90) {
			part[1]++
		}
		parts[key] = part
	}
	var shares []float64
	w := Windows{Seconds: window}
	for _, part := range parts {
		if part[0] < perWindow {
			continue
		}
		share := float64(part[1]) / float64(part[0])
		shares = append(shares, share)
		if share < 0.75 {
			w.Below75++
		}
	}
	if w.N = len(shares); w.N == 0 {
		return w
	}
	q := stat.Quantiles(shares, 0, 0.1, 0.5, 0.9)
	w.Least, w.P10, w.P50, w.P90 = q[0], q[1], q[2], q[3]
	return w
}
