// Package cluster replays a workload on many simulated engines under a virtual clock, with the very
// router that serves: router.Router with its policy, the fleet ledger and the prefix index decide,
// and learn of loads, tokens and ends as late as a real router would.
//
// [Run] replays a workload; [Validate] compares simulated engines with measurements of real ones;
// [Speed] is the workload that the simulator's own speed is measured with.
//
// A run is a function of its configuration and its workload: equal seeds give equal bytes. Every
// random stream has a seed of its own, so that another policy never moves an arrival.
package cluster
