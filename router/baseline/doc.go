// Package baseline holds the rules that Presage is compared with: the plain ones and the published
// rules of other routers, one file each, rebuilt from their formulas with their published defaults
// as named constants. "Better than X" shall mean better than X as its own users run it.
//
// Where a formula needs what an engine or a peer's own index would say, the nearest thing the router
// knows stands in for it, and the comment says so: the ledger for counts and tokens in flight, the
// prefix match of the query for cache contents.
//
// A policy serves one router: Route is called under its decision lock.
package baseline
