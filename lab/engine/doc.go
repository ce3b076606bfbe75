// Package engine is one vLLM-like engine made of numbers: step time, continuous-batching scheduler,
// paged KV cache with prefix caching. It is a deterministic state machine without clock, goroutine
// or lock; the caller owns the time, so the same code runs under a virtual clock (package cluster)
// and under the wall clock (package emulator).
//
// The step-time model and the scheduler rules are those of vLLM 0.32 as far as they decide who
// waits for what: running requests first under one token budget, chunked prefill, first come first
// served with head-of-line blocking, recompute preemption, prefix cache of full blocks with LRU
// eviction. Coefficients come from measured GPU kernels; see coefs.json and NOTICE.
//
// Driving it:
//
//	for {
//		due, ok := e.Next()               // when something happens next, if nothing is submitted
//		// wait until due, or until there is a request to submit
//		for _, ev := range e.Advance(now) { … }
//		h, err := e.Submit(now, &engine.Request{…})
//	}
//
// Calls come in order of time, and whatever else is called at an instant, Advance is called for that
// instant before: an engine may lag behind by steps in which nothing happens. An Engine belongs to
// one goroutine. Times are offsets from an epoch of the caller's choice.
//
// Decode steps are not simulated request by request: all running decodes advance together, so a
// step costs O(1) plus what really happens in it, and while nothing can happen a whole run of steps
// is one closed form (a macro-step). Step ends are computed in whole picoseconds, which makes a
// macro-step equal to the single steps it stands for to the last digit.
package engine
