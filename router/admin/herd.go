package admin

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/router"
)

// herd measures whether decisions pile up: over windows of at least a second and 32 decisions per
// candidate, the largest over the mean of the uncached tokens newly placed on each endpoint. Fewer
// decisions would measure chance.
type herd struct {
	last atomic.Uint64 // bits of the last ratio; 0: none yet

	mu     sync.Mutex
	start  time.Time
	placed []float64 // by slot
	count  int
}

const (
	herdWindow    = time.Second
	herdDecisions = 32
)

func (h *herd) add(q *router.Query, picked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := q.Snap.Slots; len(h.placed) < n {
		h.placed = append(h.placed, make([]float64, n-len(h.placed))...)
	}
	if h.start.IsZero() {
		h.start = q.Now
	}
	candidates := q.Candidates()
	if q.Now.Sub(h.start) >= herdWindow && h.count >= herdDecisions*candidates {
		h.close(candidates)
		h.start, h.count = q.Now, 0
		clear(h.placed)
	}
	h.count++
	h.placed[q.Snap.States[picked].Slot] += float64(q.UncachedTokens(picked))
}

// close ends a window. Endpoints that were no candidates at its end may have got work before: the
// mean is over the larger of both numbers.
func (h *herd) close(candidates int) {
	most, sum, used := 0.0, 0.0, 0
	for _, w := range h.placed {
		if w > 0 {
			used++
		}
		most, sum = max(most, w), sum+w
	}
	if sum > 0 {
		h.last.Store(math.Float64bits(most / (sum / float64(max(candidates, used)))))
	}
}

// ratio returns the last ratio, at least 1; 0 means that none was measured yet.
func (h *herd) ratio() float64 { return math.Float64frombits(h.last.Load()) }

// ttfts sums times to first token by endpoint.
type ttfts struct {
	mu sync.Mutex
	by map[string]*sum
}

type sum struct {
	count   uint64
	seconds float64
}

func (t *ttfts) add(endpoint string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.by[endpoint]
	if s == nil {
		if len(t.by) >= 4*maxEndpoints {
			return // names come from the fleet and are dropped when they leave; this is the backstop
		}
		s = &sum{}
		t.by[endpoint] = s
	}
	s.count++
	s.seconds += d.Seconds()
}

// take returns the sums of the endpoints that are shown and forgets those that have left.
func (t *ttfts) take(known map[string]bool) map[string]sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]sum, len(t.by))
	for name, s := range t.by {
		if !known[name] {
			delete(t.by, name)
			continue
		}
		out[name] = *s
	}
	return out
}
