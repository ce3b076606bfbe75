// Package features is everything the router knows, as numbers: the [Observation] of one finished
// request, with the state of its endpoint when it was placed there. Its subpackages say where the
// numbers come from: fleet (endpoints and the ledger), request (API bodies), prefix (which endpoint
// holds which blocks), scrape (engine metrics) and discover (the set of endpoints).
package features
