// Package adaptive is the policy that retunes the weights of scorers while it serves: the rival of
// forecasting.
//
// Four detectors watch the pool, each giving a value from 0 to 1: [Imbalance] of load between
// endpoints, [Burst] of arrivals, [Pressure] on the pool as a whole, and what the prefix caches are
// worth ([Cache]). A value is smoothed, rising fast and falling slowly, and counts only while its
// detector is active: it becomes so at one threshold and ceases to be at a lower one, not before a
// minimum dwell. The [Curve], a generalised sigmoid of the weighted sum of what counts, says which
// share of a constant weight budget goes to the scorers that spread work; the rest goes to those that
// keep requests where their state is. Within each side the scorers keep their proportions.
//
// Shares are taken from a small fixed ladder, so the weights in force are one of a few immutable
// vectors behind an atomic pointer: a decision takes one of them, whole, and every change is worth a
// line in the log ([Policy.Changes]).
//
// [Policy.Tick] runs the detectors at the cadence of scrapes, off the request path. A herd is over
// before the next scrape, so Route runs them too when the requests in flight have grown by a quarter,
// at most once in 10 ms. Nothing here reads a clock, starts a goroutine or draws at random: equal
// calls give equal weights.
package adaptive
