package router

import "time"

// FreshFilter keeps endpoints whose metrics page is at most MaxAge old. When all pages are old it
// keeps everybody: missing information may slow requests down but never stops them.
type FreshFilter struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Filter].
func (FreshFilter) Name() string { return "stale" }

// Filter implements [Filter].
func (f FreshFilter) Filter(q *Query, keep []bool) {
	oldest, some := horizon(q, f.MaxAge), false
	for i, k := range keep {
		some = some || k && fresh(&q.Snap.States[i], oldest)
	}
	if !some {
		return
	}
	for i, k := range keep {
		keep[i] = k && fresh(&q.Snap.States[i], oldest)
	}
}

var _ Filter = FreshFilter{}
