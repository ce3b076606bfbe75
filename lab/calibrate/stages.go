package calibrate

import (
	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/internal/stat"
)

// stages splits the requests of a sweep, in order of arrival, into its stages and returns where each
// begins. guidellm's sweeps run one request after another, then all at once (the burst), then at
// constant rates, rising: a stage begins where the burst does, and after it where nothing is open and
// the gap before is far longer than the gaps that follow.
func stages(rows []datasets.Row) []int {
	gap := func(i int) float64 { return rows[i].Arrival - rows[i-1].Arrival }
	const (
		together = 0.1 // seconds: gaps in a burst are shorter
		ahead    = 5   // gaps that tell a stage's rate
		longer   = 2.2 // a failed request, which is missing, doubles a gap; a new stage triples it
	)
	starts := []int{0}
	i := 1
	for ; i+3 < len(rows); i++ {
		if gap(i+1) < together && gap(i+2) < together && gap(i+3) < together {
			starts = append(starts, i)
			break
		}
	}
	for i++; i < len(rows); i++ {
		next := make([]float64, 0, ahead)
		for j := i + 1; j < len(rows) && len(next) < ahead; j++ {
			next = append(next, gap(j))
		}
		if len(next) == ahead && rows[i].State.Inflight == 0 && gap(i) > longer*stat.Median(next) {
			starts = append(starts, i)
		}
	}
	return starts
}
