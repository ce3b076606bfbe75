package predictor

import "sync/atomic"

// Handle passes the newest forecaster to those who decide. The zero Handle holds a forecaster of
// generic priors. It is safe for concurrent use.
type Handle struct{ p atomic.Pointer[Frozen] }

// Store makes f the forecaster from the next decision on.
func (h *Handle) Store(f *Frozen) { h.p.Store(f) }

// Load returns the newest forecaster, never nil.
func (h *Handle) Load() *Frozen {
	if f := h.p.Load(); f != nil {
		return f
	}
	return &generic
}

var generic Frozen
