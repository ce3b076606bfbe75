package compare

import (
	"math"
	"time"
)

// The windows of the herd index.
const (
	herdWindow = time.Second
	herdLeast  = 8 // arrivals of a window that counts
)

// herd counts how much of what arrives within a second goes to one engine. Its index is, over the
// seconds with at least eight arrivals, the mean of the largest share that one engine got, as a
// multiple of an even share: 1 where every second is spread evenly, the number of engines where
// every second goes to one. Chance alone makes it more than 1: eight arrivals drawn at random over
// eight engines give about 2.4.
type herd struct {
	engines int
	windows [][]int // arrivals by engine; the last element counts all, refused ones included
}

// add counts an arrival at a time since the counting began; an engine below 0 is none.
func (h *herd) add(at time.Duration, engine int) {
	w := int(at / herdWindow)
	for len(h.windows) <= w {
		h.windows = append(h.windows, nil)
	}
	if h.windows[w] == nil {
		h.windows[w] = make([]int, h.engines+1)
	}
	h.windows[w][h.engines]++
	if engine >= 0 {
		h.windows[w][engine]++
	}
}

// index is NaN where no second had enough arrivals.
func (h *herd) index() float64 {
	var sum float64
	n := 0
	for _, w := range h.windows {
		if w == nil || w[h.engines] < herdLeast {
			continue
		}
		most := 0
		for _, c := range w[:h.engines] {
			most = max(most, c)
		}
		sum += float64(most) * float64(h.engines) / float64(w[h.engines])
		n++
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
