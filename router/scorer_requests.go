package router

// RequestsScorer prefers endpoints with fewer requests of ours in flight: 1 up to IdleThreshold, else
// MaxBusyScore*(Imax-I)/Imax over the candidates (llm-d-router's active-request-scorer). It counts
// what the router itself dispatched and is exact at every instant.
type RequestsScorer struct {
	IdleThreshold int32   // published: 0
	MaxBusyScore  float64 // published: 1
}

// Name implements [Scorer].
func (RequestsScorer) Name() string { return "requests" }

// Category implements [Scorer].
func (RequestsScorer) Category() Category { return Distribution }

// Score implements [Scorer].
func (c RequestsScorer) Score(q *Query, keep []bool, out []float64) {
	most := int32(0)
	for i, k := range keep {
		if k {
			most = max(most, q.Snap.States[i].Requests)
		}
	}
	for i, k := range keep {
		if !k {
			continue
		}
		n := q.Snap.States[i].Requests
		out[i] = 1
		if n > c.IdleThreshold {
			out[i] = c.MaxBusyScore * float64(most-n) / float64(most)
		}
	}
}

var _ Scorer = RequestsScorer{}
