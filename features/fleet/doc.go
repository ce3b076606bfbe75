// Package fleet knows the model servers and the work the router itself has placed on them.
//
// Three things live here. An [Endpoint] is one immutable address (one port, so one data-parallel
// rank). A [Load] is what the engine said about itself at its last scrape. The ledger is what the
// router knows exactly: every decision reserves its work with [Fleet.Begin] and the returned
// [Ticket] moves or releases it on first token, tokens, end, or any other [Cause].
//
// The invariant the whole design rests on: at every instant, the in-flight count of an endpoint
// instance equals the number of open tickets bound to that very instance, and never is negative.
// Tickets are handles with a generation, so late, repeated or misdirected events are no-ops for
// ever, and an endpoint that is removed and added again under the same address is a new instance
// that inherits nothing.
//
// The package holds no clock, goroutine or socket: callers pass the time.
package fleet
