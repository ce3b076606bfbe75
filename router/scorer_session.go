package router

import "github.com/cespare/xxhash/v2"

// SessionScorer sends a session to one endpoint: 1 for the candidate of the highest hash of session
// and endpoint name (rendezvous hashing), 0 for the others. It keeps no table: a session moves only
// when its endpoint is no candidate, and replicas of the router agree. Requests without a session
// score 0 everywhere.
type SessionScorer struct{}

// Name implements [Scorer].
func (SessionScorer) Name() string { return "session" }

// Category implements [Scorer].
func (SessionScorer) Category() Category { return Affinity }

// Score implements [Scorer].
func (SessionScorer) Score(q *Query, keep []bool, out []float64) {
	home, best := -1, uint64(0)
	session := xxhash.Sum64String(q.Req.Session)
	for i, k := range keep {
		if !k {
			continue
		}
		out[i] = 0
		if q.Req.Session == "" {
			continue
		}
		if h := mix(session ^ xxhash.Sum64String(q.Snap.States[i].Name)); home < 0 || h > best {
			home, best = i, h
		}
	}
	if home >= 0 {
		out[home] = 1
	}
}

// mix is the finaliser of SplitMix64: every bit of the input moves every bit of the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

var _ Scorer = SessionScorer{}
