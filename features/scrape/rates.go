package scrape

import "github.com/presage-router/presage/features/fleet"

// Rates is what an engine did between two loads. Fields are valid as Known says.
type Rates struct {
	Known       fleet.Known // KnowPrefix, KnowTokens, KnowPreemptions
	Seconds     float64     // between the two pages
	Prompt      float64     // prompt tokens per second
	Generated   float64     // generated tokens per second
	Preemptions float64     // per second
	HitRatio    float64     // prefix-cache hits per query, 0..1; valid with KnowPrefix, which needs queries
}

// Between computes the rates from two loads of the same endpoint, old first. It returns false when
// the engine restarted in between, when time did not advance or when no counter is on both: there
// is no rate then, not a rate of zero.
func Between(old, l *fleet.Load) (Rates, bool) {
	r := Rates{Seconds: l.At.Sub(old.At).Seconds()}
	if old.At.IsZero() || r.Seconds <= 0 || old.Restarts != l.Restarts || restarted(old, l) {
		return Rates{}, false
	}
	both := old.Known & l.Known &^ (old.Held | l.Held)
	if both.Has(fleet.KnowTokens) {
		r.Known |= fleet.KnowTokens
		r.Prompt, r.Generated = (l.Prompt-old.Prompt)/r.Seconds, (l.Generated-old.Generated)/r.Seconds
	}
	if both.Has(fleet.KnowPreemptions) {
		r.Known |= fleet.KnowPreemptions
		r.Preemptions = (l.Preemptions - old.Preemptions) / r.Seconds
	}
	if q := l.Queries - old.Queries; both.Has(fleet.KnowPrefix) && q > 0 {
		r.Known |= fleet.KnowPrefix
		r.HitRatio = min((l.Hits-old.Hits)/q, 1)
	}
	return r, r.Known != 0
}
