// Package workload is what clients do: scenarios, read from YAML files or built in, and the jobs they
// make of a seed.
//
// A [Scenario] says which engines there are, what requests arrive (when, how long, sharing which
// prefixes, in which sessions), under which SLOs, what happens to the engines meanwhile, and why one
// policy should do better on it than another. [Scenario.Source] turns it into a [cluster.Source].
//
// Everything is a function of (scenario, seed, load). Each aspect of each class of traffic (arrivals,
// prompt lengths, answer lengths, prefix choice, sessions, ...) draws from a random stream of its own,
// so that changing one moves no other, and no policy can move any: what a session does later is drawn
// from the session's own stream, whenever it is asked.
package workload
