// Package scrape turns the metrics pages of engines into [fleet.Load].
//
// A [Scanner] reads one page as it arrives and looks only for the metrics it knows, one dialect per
// file: vLLM (0.6 to 0.32, checked against a real page), SGLang and TensorRT-LLM's trtllm-serve
// (both unverified: written from published metric names). It costs about 15 us for a vLLM 0.32 page
// of 52 KB and no allocation, where a full parser takes a millisecond. The page itself tells which
// engine wrote it, unless the endpoint names one.
//
// What a page may do to us is bounded, and what it does not say is unknown, never zero:
//
//   - A value that is NaN, infinite or out of range is refused and counted; the other fields of the
//     page count. A refused, renamed or missing field keeps its old value, marked as held, until that
//     is stale. Percentages (87 for 0.87) are refused, not guessed at.
//   - Ranks with a scheduler of their own (vLLM's engine, SGLang's dp_rank) are added up, with the
//     mean of the KV usage and its maximum; ranks that only repeat their group (tp_rank) are not.
//     A sum that lacks one rank is no sum: the field is unknown.
//   - Of several models on a page only the endpoint's counts. A page of one model is taken to be the
//     endpoint's, whatever the model is called there ("undefined" included).
//   - Adapter states are ordered by their time, not by their line.
//   - Of a page cut short, nothing counts. A page in the classic format without a length, sent over a
//     connection that ends after a full line, cannot be recognised as cut; it then lacks fields.
//   - A counter that goes back is an engine restart: there is no rate across it (see [Between]).
//
// A [Scraper] keeps a whole fleet's loads up to date from one loop, see there for its intervals. Its
// HTTP/1.1 client is its own: small, strict, one kept connection per endpoint, read into one
// buffer. Over loopback, fetching eight pages every 200 ms costs about 75 us of CPU time a page that
// way and 210 us with net/http, scanning aside (BenchmarkIdle measures all of it). Compressed pages are read but not asked for: inflating one
// costs more than its bytes. Redirects are not followed and there is no TLS.
//
// [Trust] says how far a load may be believed, given the router's own ledger. Missing and stale
// pages are seen in [Scraper.Stats] and in the log, at most one line per endpoint in 30 s, and never
// stop traffic.
package scrape
