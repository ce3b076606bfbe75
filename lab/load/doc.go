// Package load is a client that sends a workload to a gateway over HTTP and times the answers.
//
// The loop is open: a request goes out when it is due, whatever has become of those before, and all
// times count from when it was due, so that a slow fleet is not asked less. Workloads are functions of
// a seed; a gateway, an emulated engine and a real one take the same.
package load
