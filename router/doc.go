// Package router makes the decision: which endpoint answers a request.
//
// A [Policy] is the one extension point. Weighted scorers, round robin, every peer's baseline, an
// experiment and a shadow are policies alike, so comparing strategies is composing values, and the
// lab runs the very code that serves. A policy sees a [Query] (the request, one consistent
// snapshot of the fleet, the prefix match per endpoint, the candidates) and fills a [Decision].
//
// [Router] owns the critical section: snapshot, prefix match, decision and reservation happen under
// one lock, so that the next decision sees the load that the last one placed. A [Flight] is one
// routed request from decision to end; it feeds the ledger, the prefix index and the [Observer].
//
// A [Profile] is the policy of the scorers: filters take candidates out, each [Scorer] rates the rest
// from 0 to 1, a [Picker] chooses by the weighted sum. Configuration describes it as a [ProfileSpec].
//
// Every decision carries its propensity and an [Explanation]: terms per candidate that add up to
// what was compared, and the reason, which [Verdict] puts into one sentence.
//
// Nothing here reads a clock, starts a goroutine or opens a socket; callers pass the time. The
// simulator and the live service run the same code.
package router
