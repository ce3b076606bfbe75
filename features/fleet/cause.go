package fleet

// Cause says how a request ended. Everything but [Complete] is censored or failed: its times are
// never exact labels.
type Cause uint8

// The ways a request can end.
const (
	Open          Cause = iota // not ended yet
	Complete                   // the end of a successful answer was seen
	UpstreamError              // the engine answered with an error status or an error event
	Truncated                  // the answer ended without its end marker
	ClientGone                 // the stream was reset before the answer ended
	Expired                    // released by the maximum age of a ticket
	Internal                   // our own fault
)

// String returns the cause's name in logs, traces and metrics.
func (c Cause) String() string {
	switch c {
	case Open:
		return "open"
	case Complete:
		return "complete"
	case UpstreamError:
		return "upstream_error"
	case Truncated:
		return "truncated"
	case ClientGone:
		return "client_gone"
	case Expired:
		return "expired"
	case Internal:
		return "internal"
	}
	return "unknown"
}
