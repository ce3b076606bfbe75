package adaptive

import (
	"math"

	"github.com/presage-router/presage/features/fleet"
)

// Pressure is how saturated the pool is: the mean over endpoints of the larger of waiting/5 and
// KV usage/0.8, each up to 1 (llm-d-router's saturation). It is high only when there is nowhere left
// to go: then balance gains little, and every prefix computed again takes room and time from all.
type Pressure struct{}

// At these an endpoint counts as saturated (llm-d-router's defaults).
const (
	saturatedQueue = 5
	saturatedKV    = 0.8
)

// Name implements [Detector].
func (Pressure) Name() string { return "pressure" }

// Detect implements [Detector].
func (Pressure) Detect(s *Sample) float64 {
	sum, known := 0.0, 0
	for i := range s.Snap.States {
		st := &s.Snap.States[i]
		if !serving(st) || !s.fresh(st) {
			continue
		}
		queue, kv := math.NaN(), math.NaN()
		if st.Known.Has(fleet.KnowWaiting) && st.Waiting >= 0 {
			queue = min(float64(st.Waiting)/saturatedQueue, 1)
		}
		if k := float64(st.KVUsage); st.Known.Has(fleet.KnowKV) && k >= 0 && k <= 1 {
			kv = min(k/saturatedKV, 1)
		}
		switch {
		case math.IsNaN(queue) && math.IsNaN(kv):
			continue
		case math.IsNaN(kv) || queue > kv:
			sum += queue
		default:
			sum += kv
		}
		known++
	}
	if known == 0 {
		return math.NaN()
	}
	return sum / float64(known)
}

var _ Detector = Pressure{}
