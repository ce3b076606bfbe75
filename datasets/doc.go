// Package datasets reads traces and measurements of model serving in the formats people publish
// and tools write: one reader per file, found by content.
//
// A file holds records of one type: [Row] (one request) for traces and per-request measurements,
// and [Rate], [Lengths], [Sample], [Pass], [Step], [Aggregate], [Stage], [Profile], [Cost] or [Pods]
// for the rest. [Load] reads a file whole, [Scan] record by record in constant memory, [LoadTrace]
// reads requests into arrival order.
//
// Bad input is never silent. A record that cannot be used is dropped, counted by reason in the
// [Report], and the first one is kept there with line, field and value. Whatever makes the file
// as a whole untrustworthy (cut compression, no header, not UTF-8, an over-long line) is an [Error]:
// nothing is returned that could be taken for a complete file.
//
// Times are seconds and NaN where unknown, counts are [Unknown] where unknown: unknown is not zero.
package datasets
