// Package experiment compares policies on live traffic.
//
// An [Experiment] is itself a [router.Policy], composed of one policy per [Arm]. Requests, sessions
// or blocks of time are assigned to arms by a hash, salted by the experiment's seed, so that an
// assignment can be repeated and replicas agree on it:
//
//   - [ByRequest]: each request by its number. Requests of one conversation meet both policies.
//   - [BySession]: all requests of a session meet one policy; those without a session, each its own.
//   - [ByBlock]: everybody meets the policy of the block of time (a switchback). Blocks come in rounds
//     that hold every arm in proportion to its share, in random order. What is decided during the
//     washout at the start of a block belongs to no arm: the fleet still carries the last block's work.
//
// Arms of requests and sessions share queues and caches, so that a difference between them understates
// or misstates what a switch would bring; only blocks answer that. A share of blocks can be held back
// whatever the unit: the control decides for everybody, under the arm name [HeldBack].
//
// [Guardrail] rules end an experiment that does harm: from then on the control decides everything.
// The arm's requests and the control's of the same stretch of time (a cell: at least 5 s, or a round
// of blocks, and 20 requests of each) give one difference. A rule trips when the mean of the last
// differences (at most 60, at least 6) is beyond its margin and Student's one-sided test against 0
// gives p < 1e-7. Taken at every cell of 5 s for three rules, that is at most one false trip in 190
// days of an A/A experiment by the union bound. Errors have a short cut: half the requests more than
// the control's, among at least 50 of each, trip at once; in an experiment by blocks, an outage within
// one block would too.
//
// A [Shadow] has other policies decide a sample of the same requests without effect: nothing is
// reserved, no prefix is inserted, their draws and their memory are their own, and a panic is counted.
// One in [DefaultEvery] decisions is shadowed: a service spends more time on the rest of a request
// than on its decision, so that a shadow costs at most 5 % of its CPU.
//
// The package holds no clock, goroutine or socket: time comes with queries and observations.
package experiment
