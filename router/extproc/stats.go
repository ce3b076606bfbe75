package extproc

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Stats receives what the service counts. Its methods are called on the hot path by many goroutines
// at once and must not block. Model names come from clients: whoever makes labels of them must cap
// their number.
type Stats interface {
	StreamOpened()                              // a stream of the gateway
	StreamClosed(code string)                   // every opened one, once; code as "OK" or "Canceled"
	Spent(p Phase, d time.Duration)             // time that the service added
	Began(model string)                         // a request was routed
	Ended(model string, routed bool, o Outcome) // every request, once; routed: after Began
	Refused(status int, reason string)          // a request was answered by the service itself
	BadUsage()                                  // an answer reported impossible usage
}

// Phase is a part of an exchange whose time is measured.
type Phase uint8

// The measured phases.
const (
	Decide Phase = iota // from the complete request to the answer
	Relay               // of one message of the response
)

// String returns the phase's name in metrics.
func (p Phase) String() string {
	if p == Decide {
		return "decide"
	}
	return "relay"
}

// Outcome is how a request ended, as operators count it.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	UpstreamError
	ClientGone
	Shed
	NoEndpoint
	BadRequest
	Internal
)

// String returns the outcome's name in metrics.
func (o Outcome) String() string {
	switch o {
	case OK:
		return "ok"
	case UpstreamError:
		return "upstream_error"
	case ClientGone:
		return "client_gone"
	case Shed:
		return "shed"
	case NoEndpoint:
		return "no_endpoint"
	case BadRequest:
		return "bad_request"
	case Internal:
		return "internal"
	}
	return "unknown"
}

// outcomeOf folds the causes of the ledger.
func outcomeOf(c fleet.Cause) Outcome {
	switch c {
	case fleet.Complete:
		return OK
	case fleet.UpstreamError, fleet.Truncated, fleet.Expired:
		return UpstreamError
	case fleet.ClientGone:
		return ClientGone
	case fleet.Internal, fleet.Open:
	}
	return Internal
}

// noStats counts nothing.
type noStats struct{}

func (noStats) StreamOpened()               {}
func (noStats) StreamClosed(string)         {}
func (noStats) Spent(Phase, time.Duration)  {}
func (noStats) Began(string)                {}
func (noStats) Ended(string, bool, Outcome) {}
func (noStats) Refused(int, string)         {}
func (noStats) BadUsage()                   {}

var _ Stats = noStats{}
