package admin

import (
	"math"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// Foretold is what was foretold of a request on one endpoint.
type Foretold struct {
	TTFT *Quantiles `json:"ttft,omitempty"`
	ITL  *Quantiles `json:"itl,omitempty"`
}

// Quantiles are of a foretold time, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
}

// Errors compare what was foretold with what happened, where the request ended as forecasts assume:
// streamed to its natural end by the endpoint it was sent to.
type Errors struct {
	TTFT *Error `json:"ttft,omitempty"`
	ITL  *Error `json:"itl,omitempty"`
}

// Error is one foretold time beside the real one.
type Error struct {
	Foretold float64 `json:"foretold_ms"` // median
	Actual   float64 `json:"actual_ms"`
	Ratio    float64 `json:"ratio"`  // actual over foretold
	Within   string  `json:"within"` // the least quantile foretold that it did not exceed: p50, p90, p99 or none
}

// newForetold returns nil where nothing was foretold.
func newForetold(ttft, itl *features.Prediction) *Foretold {
	f := Foretold{TTFT: quantiles(ttft), ITL: quantiles(itl)}
	if f == (Foretold{}) {
		return nil
	}
	return &f
}

func quantiles(p *features.Prediction) *Quantiles {
	if !p.Known() {
		return nil
	}
	ms := func(s float32) float64 { return math.Round(float64(s)*1e6) / 1e3 }
	return &Quantiles{P50: ms(p.P50), P90: ms(p.P90), P99: ms(p.P99)}
}

// errors compares the forecasts with the outcome; nil where they cannot be.
func (h *head) errors() *Errors {
	o := &h.out
	if !h.stream || o.cause != fleet.Complete || o.status >= 400 || o.served != o.picked {
		return nil
	}
	e := Errors{TTFT: against(&h.ttft, o.ttft), ITL: against(&h.itl, o.itl)}
	if e == (Errors{}) {
		return nil
	}
	return &e
}

func against(p *features.Prediction, took time.Duration) *Error {
	if !p.Known() || took <= 0 {
		return nil
	}
	actual := took.Seconds()
	e := &Error{
		Foretold: quantiles(p).P50, Actual: levels(took, 0, 0).TTFT,
		Ratio: math.Round(actual/float64(p.P50)*1e4) / 1e4, Within: "none",
	}
	switch {
	case actual <= float64(p.P50):
		e.Within = "p50"
	case actual <= float64(p.P90):
		e.Within = "p90"
	case actual <= float64(p.P99):
		e.Within = "p99"
	}
	return e
}
