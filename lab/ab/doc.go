// Package ab reads what a live experiment left in logs of finished requests and says what it shows.
//
// The logs are read twice, record by record, in any order, as many files as there are replicas. A
// [Survey] finds out what the experiment was: its arms, and whether blocks of time (a switchback),
// sessions or requests were assigned to them. The [Plan] that follows says what is compared with what;
// a [Ledger] of it sums the records up by cells of time and arm, and [Ledger.Report] tells:
//
//   - Differences of the arms in SLO attainment (primary), TTFT, ITL and errors. A pair is the shortest
//     stretch of consecutive blocks that holds both arms, or, where sessions or requests were split, a
//     cell of time, with every session counted whole in the cell of its first request. The mean
//     difference of pairs has an interval that may be read at any time ([stat.Sequence]) and, beside it,
//     Student's for an end that was fixed beforehand.
//   - Checks that any of which forbids a verdict: A/A, carry-over between blocks, arrivals, independence
//     of pairs, washout, arms that overlap.
//   - What one decision would have brought, from arms that explore: self-normalised inverse propensity
//     (Swaminathan and Joachims 2015) and doubly robust (Dudík, Langford and Li 2011) estimates of the
//     TTFT. They leave the queues as they were, so they are no estimate of another policy's traffic.
//
// Requests are judged as guardrails judge them ([experiment.ResultOf]); probes of endpoints on trial
// are left out. The package holds no clock, goroutine or socket; [Read] alone opens files.
package ab
