package adaptive

import "github.com/presage-router/presage/router"

// LoadScorer prefers endpoints with fewer requests of ours in flight, each counted by how slowly the
// endpoint goes: (Lmax-L)/Lmax over the candidates, L the requests times the recent mean gap between
// tokens. It is the score of llm-d-router's active requests in seconds: an endpoint of half the speed,
// a smaller GPU or one that is throttled, gets half the requests. Endpoints whose gap is not known yet
// have the mean one of the others.
type LoadScorer struct{}

// Name implements [router.Scorer].
func (LoadScorer) Name() string { return "load" }

// Category implements [router.Scorer].
func (LoadScorer) Category() router.Category { return router.Distribution }

// Score implements [router.Scorer].
func (LoadScorer) Score(q *router.Query, keep []bool, out []float64) {
	sum, known := 0.0, 0
	for i, k := range keep {
		if gap := q.Snap.States[i].ITL; k && gap > 0 {
			sum += gap.Seconds()
			known++
		}
	}
	mean := 1.0
	if known > 0 {
		mean = sum / float64(known)
	}
	most := 0.0
	for i, k := range keep {
		if !k {
			continue
		}
		s := &q.Snap.States[i]
		gap := mean
		if s.ITL > 0 {
			gap = s.ITL.Seconds()
		}
		out[i] = gap * float64(max(s.Requests, 0))
		most = max(most, out[i])
	}
	for i, k := range keep {
		switch {
		case !k:
		case most == 0:
			out[i] = 1
		default:
			out[i] = (most - out[i]) / most
		}
	}
}

var _ router.Scorer = LoadScorer{}
