// Package demo runs the real service before emulated engines, and sends it the same requests under
// one policy after another: what an operator can see without a cluster.
//
// Every policy gets engines, service and gateway of its own, made anew, so that nothing is left in a
// cache, an index or a learner from the policy before; the addresses stay the same. The gateway is
// package gateway or a real Envoy. The client is package load; all times are a client's.
//
// The service itself comes from the caller, see [Start].
package demo
