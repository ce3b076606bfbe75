// Package outlier finds endpoints that do not work and keeps requests away from them until they do.
//
// A failing endpoint answers at once and so looks idle, and one that never answers looks no busier
// than its twins: every policy that balances load is drawn to the first and goes on feeding the
// second. The [Detector] therefore stands before all policies. It learns from how requests end and
// from silence, and takes endpoints out of the candidates:
//
//   - [Failures]: three requests in a row failed on the engine's side (5xx, refused, reset before the
//     first token, passed over by the gateway). A request begun after the last failure that completes
//     starts the count anew.
//   - [Rate]: of at least 5 failures within about 10 s, the share is 15 points above that of the
//     other endpoints of the same model, so that requests which fail everywhere accuse nobody.
//   - [Silent]: streamed requests wait for their first token and nothing at all has come for the
//     longest of 5 s, 4 times its recent time to first token, and 4 times what the largest prompt
//     waiting there should take. Answers that are not streamed are silent by nature and do not count.
//   - [Unreachable]: the metrics page, which is served at the same address, got no HTTP answer three
//     times in a row, and no token came for a second.
//   - [Slow]: for 5 s, second by second, the tokens of its answers (at least 4) came 10 times as slowly
//     as on average from the others of its model, GPU and width, of which at least two stream, and
//     less often than every 250 ms. What is slower by less is for policies to price.
//
// What the client caused (4xx) and requests that clients gave up never count as failures.
//
// At most the larger of one and 30 % of a model's endpoints are out at a time, never a lone one,
// and no decision is left without candidates. A suspect beyond that share stays a candidate of one
// in ten decisions; so do those of the ejected that are too many once others have left. A single
// request at a time is sent to an ejected endpoint as a probe, 5 s after the ejection at the
// earliest, then after 10, 20, 40, and every 60 s; where the page shows it still unreachable only
// every 60 s. The first token, or the end of a complete answer, of a request begun since (a probe, or
// one that had no other candidate) brings it back, at a tenth of its chances, which rise to all
// within 10 s: so too for endpoints that join a running fleet. A failure within that time ejects
// again. Two good minutes clear the record.
//
// The package holds no clock, goroutine or socket: callers pass the time.
package outlier
