// Package predictor foretells TTFT and ITL of a request on every endpoint, and learns from every
// request that ends.
//
// Per class of endpoints (model, hardware, engine) and target, eight members each make a forecast:
// the physical law (a few coefficients with a physical meaning, corrected per endpoint), its frozen
// prior, two recursive least squares on a richer basis that forget fast and slowly, two running
// medians, and boosted trees of the time and of its ratio to the slow regression. They are blended
// by what they said at the decision and how wrong it was, so that the best one of the hour carries
// the forecast and a spoiled one loses its voice within a few hundred labels. Quantiles come from
// the recent errors of the blend, per number of requests in flight.
//
// A [Learner] learns and is not safe for concurrent use. It publishes [Frozen] forecasters, which
// are immutable; a [Handle] passes the newest one to those who decide. Nothing here reads a clock,
// starts a goroutine or opens a socket.
package predictor
