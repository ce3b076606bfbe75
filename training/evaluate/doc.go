// Package evaluate judges the online learner on recorded requests, the way it would have been used:
// in order of time, each forecast made from what a router could know at that moment, each label
// learned only once it could be known.
//
// Records with a clock are replayed through the router's own ledger, so that the vectors are those
// that serving would have seen. Records without one (those of llm-d's router) carry their state
// themselves; their labels are held back by twice the number of running requests.
package evaluate
