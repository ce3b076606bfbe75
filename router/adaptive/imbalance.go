package adaptive

import (
	"math"

	"github.com/presage-router/presage/features/fleet"
)

// Imbalance is how unevenly load lies on the endpoints of a model: the largest, over six measures of
// load and over models, of the normalised coefficient of variation CV/sqrt(N-1), which is 0 for equal
// endpoints and 1 when one of N has everything.
//
// Chance alone makes few requests lie unevenly: a Poisson count of mean m has a squared CV of 1/m.
// Four times that, for loads made of requests of unequal size eight times, is taken off the squared CV,
// so that a few requests on an idle pool do not look like a hot spot. KV usage counts by how full the fullest endpoint
// is, and seconds of work by how long they are against [Imbalance.Work].
type Imbalance struct {
	Work float64 // seconds of prefill ahead, on the endpoint with the most, that count by half
}

// measure is one way to look at the load of an endpoint.
type measure struct {
	scraped fleet.Known // fields of the page it needs; 0: none, it is in the ledger
	read    func(*fleet.State) float64
	noise   float64                    // of chance, in squared CVs of a Poisson count of units; 0: none
	units   func(*fleet.State) float64 // requests that the load consists of
}

var measures = [...]measure{
	{fleet.KnowWaiting, func(s *fleet.State) float64 { return float64(s.Waiting) }, 4, func(s *fleet.State) float64 { return float64(s.Waiting) }},
	{fleet.KnowRunning, func(s *fleet.State) float64 { return float64(s.Running) }, 4, func(s *fleet.State) float64 { return float64(s.Running) }},
	{fleet.KnowKV, func(s *fleet.State) float64 { return float64(s.KVUsage) }, 0, nil},
	{0, func(s *fleet.State) float64 { return float64(s.Requests) }, 4, func(s *fleet.State) float64 { return float64(s.Requests) }},
	{0, func(s *fleet.State) float64 { return float64(s.PendingTokens + s.Context) }, 8, func(s *fleet.State) float64 { return float64(s.Requests) }},
	{0, func(s *fleet.State) float64 { return float64(s.Uncached) }, 8, func(s *fleet.State) float64 { return float64(s.Pending) }},
}

// Places of the measures whose size matters too.
const (
	measureKV   = 2
	measureWork = 5
)

// Name implements [Detector].
func (Imbalance) Name() string { return "imbalance" }

// Detect implements [Detector].
func (d Imbalance) Detect(s *Sample) float64 {
	worst := math.NaN()
	for first := range s.Snap.States {
		if !leads(s.Snap, first) {
			continue
		}
		for i := range measures {
			v, most := s.uneven(first, &measures[i])
			switch i {
			case measureKV:
				v *= min(most, 1)
			case measureWork:
				seconds := most / s.PeakPrefill
				v *= seconds / (seconds + d.Work)
			}
			if v >= 0 && !(worst >= v) { //nolint:staticcheck // NaN loses
				worst = v
			}
		}
	}
	return worst
}

// leads reports whether a state is the first of its model.
func leads(s *fleet.Snapshot, i int) bool {
	if !serving(&s.States[i]) {
		return false
	}
	for j := range i {
		if s.States[j].Model == s.States[i].Model && serving(&s.States[j]) {
			return false
		}
	}
	return true
}

// uneven returns the normalised CV of a measure over the endpoints of the model of the first one,
// less what is chance, and the largest reading; NaN where fewer than two endpoints say anything.
func (s *Sample) uneven(first int, m *measure) (cv, most float64) {
	var n, sum, squares, units float64
	for i := first; i < len(s.Snap.States); i++ {
		st := &s.Snap.States[i]
		if st.Model != s.Snap.States[first].Model || !serving(st) {
			continue
		}
		if m.scraped != 0 && (!st.Known.Has(m.scraped) || !s.fresh(st)) {
			continue
		}
		x := m.read(st)
		if !(x >= 0) || math.IsInf(x, 0) { //nolint:staticcheck // NaN must be left out too
			continue
		}
		n, sum, squares, most = n+1, sum+x, squares+x*x, max(most, x)
		if m.units != nil {
			units += m.units(st)
		}
	}
	if n < 2 {
		return math.NaN(), 0
	}
	if sum == 0 {
		return 0, 0
	}
	mean := sum / n
	square := max(squares/n-mean*mean, 0) / (mean * mean)
	if m.noise > 0 {
		if units <= 0 {
			return 0, most
		}
		square -= m.noise * n / units
	}
	return unit(math.Sqrt(max(square, 0) / (n - 1))), most
}

var _ Detector = Imbalance{}
