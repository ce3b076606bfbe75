package router

import "slices"

// Judge sets the reason of a decision from its terms: that of the term by which the picked endpoint
// gains most over the runner-up, the best of the other kept ones. Totals must be filled.
func (d *Decision) Judge(q *Query, keep []bool) {
	e := &d.Why
	r := e.runnerUp(keep, d.Index)
	if r < 0 {
		e.Reason = OnlyOne
		return
	}
	gain, t := e.decisive(d.Index, r)
	if gain <= 0 {
		e.Reason = ByTie
		return
	}
	cached := q.Hits[d.Index] > q.Hits[r] && (e.Terms[t] != stall || e.shorter(d.Index, r, t))
	e.Reason = reasonOf(e.Terms[t], cached)
}

// shorter reports whether a stalls less than b by a shorter prefill more than by fewer streams: the
// term is the prompt's cost times the streams.
func (e *Explanation) shorter(a, b, stalls int) bool {
	own := slices.Index(e.Terms, ownPrompt)
	if own < 0 {
		return false
	}
	ra, rb := e.Row(a), e.Row(b)
	oa, ob := float64(ra[own]), float64(rb[own])
	return ob*ob*float64(ra[stalls]) > oa*oa*float64(rb[stalls])
}

// accounts reports whether a term can be what a reason speaks of.
func accounts(term string, r Reason) bool {
	return reasonOf(term, false) == r || reasonOf(term, true) == r
}

// Rank appends to the fallback list up to n candidates other than the picked one: first those the
// policy kept, best total first, then the rest, fewest requests in flight first. Equals follow the
// order of the snapshot from the picked one on, so that no endpoint is everybody's second choice.
func (d *Decision) Rank(q *Query, keep []bool, n int) {
	for kept := range 2 {
		for len(d.Fallback) < n {
			best := -1
			for j := range q.Keep {
				i := (d.Index + 1 + j) % len(q.Keep)
				if !q.Keep[i] || i == d.Index || keep[i] == (kept == 1) || d.listed(i) {
					continue
				}
				if best < 0 || kept == 0 && d.Why.better(i, best) ||
					kept == 1 && q.Snap.States[i].Requests < q.Snap.States[best].Requests {
					best = i
				}
			}
			if best < 0 {
				break
			}
			d.Fallback = append(d.Fallback, best)
		}
	}
}

func (d *Decision) listed(i int) bool {
	for _, j := range d.Fallback {
		if i == j {
			return true
		}
	}
	return false
}

// better reports whether endpoint i has a better total than j.
func (e *Explanation) better(i, j int) bool { return e.gain(e.Totals[i], e.Totals[j]) > 0 }

// gain is by how much a beats b, in the sense of the unit.
func (e *Explanation) gain(a, b float32) float32 {
	if e.HigherWins() {
		return a - b
	}
	return b - a
}

// runnerUp returns the kept endpoint with the best total other than the picked one, or -1.
func (e *Explanation) runnerUp(keep []bool, picked int) int {
	best := -1
	for i, k := range keep {
		if k && i != picked && (best < 0 || e.better(i, best)) {
			best = i
		}
	}
	return best
}

// decisive returns the term by which a gains most over b, and how much; not positive where a is no
// better than b in total or in any term.
func (e *Explanation) decisive(a, b int) (gain float32, term int) {
	if !e.better(a, b) {
		return 0, -1
	}
	ra, rb := e.Row(a), e.Row(b)
	for t := range ra {
		if g := e.gain(ra[t], rb[t]); g > gain {
			gain, term = g, t
		}
	}
	return gain, term
}

const (
	ownPrompt = "own prompt" // computing it
	stall     = "stall"      // of running streams, by computing it
)

// reasonOf maps the name of a term to the reason it stands for; cached tells that the gain comes from
// holding more of the prompt, where the term alone does not.
func reasonOf(term string, cached bool) Reason {
	switch term {
	case "prefix":
		return ByCache
	case ownPrompt:
		if cached {
			return ByCache
		}
		return BySpeed
	case stall:
		if cached {
			return ByCache
		}
		return ByQueue
	case "queue", "running", "requests", "tokens", "prefill", "decode", "load":
		return ByQueue
	case "kv", "kv wait":
		return ByMemory
	case "lora", "adapter":
		return ByAdapter
	case "session":
		return BySession
	case "slo":
		return ByHeadroom
	case "speed":
		return BySpeed
	}
	return NoReason
}
