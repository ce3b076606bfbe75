// Package trace keeps the records of finished requests on disk: an append-only log of
// [features.Observation] with a bounded age and a bounded size, written beside the serving and read
// by the training.
//
// [Log.Observe] never blocks and never fails: it hands the record to the one goroutine that writes,
// and counts those for which there was no room. Everything else that can go wrong (a full disk, a
// clock that jumps, a record that makes no sense) is counted too and told by [Log.Stats]. Rows are
// written in synchronous batches: what [Log.Flush] acknowledged is there after any crash.
//
// The store is badger. Its keys begin with the hour and the minute of the decision, so that old rows
// go by dropping prefixes. They carry no expiry: expired rows stay on disk, and dropping a prefix
// skips what has expired. One process at a time can open a directory.
//
// Rows hold numbers and names, no text of prompts or answers.
package trace
