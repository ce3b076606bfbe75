package scrape

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Cause is why a scrape brought no page.
type Cause uint8

// The causes.
const (
	Refused   Cause = iota // nobody listens there
	NoRoute                // the address cannot be reached
	TimedOut               // no whole page in time
	Broken                 // the connection ended early
	BadStatus              // an HTTP status other than 200
	BadAnswer              // no HTTP/1.1, or an encoding that was not asked for
	TooLarge               // the page, or a line of it
	CutShort               // the page has no end
	NoSeries               // a page without a usable series of a known engine
)

// NumCauses is the number of causes.
const NumCauses = int(NoSeries) + 1

// String returns the cause's name in metrics.
func (c Cause) String() string {
	switch c {
	case Refused:
		return "refused"
	case NoRoute:
		return "no_route"
	case TimedOut:
		return "timeout"
	case Broken:
		return "broken"
	case BadStatus:
		return "status"
	case BadAnswer:
		return "bad_answer"
	case TooLarge:
		return "too_large"
	case CutShort:
		return "cut_short"
	case NoSeries:
		return "no_series"
	}
	return "unknown"
}

// causeOf sorts an error of a scrape.
func causeOf(err error) Cause {
	var status statusError
	switch {
	case errors.As(err, &status):
		return BadStatus
	case errors.Is(err, errTooLarge), errors.Is(err, errLongLine), errors.Is(err, errManyRows):
		return TooLarge
	case errors.Is(err, errCut):
		return CutShort
	case errors.Is(err, errNoSeries), errors.Is(err, errModels):
		return NoSeries
	case errors.Is(err, errHTTP), errors.Is(err, errEncoding):
		return BadAnswer
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return TimedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Broken
	}
	return NoRoute
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// what says the cause in words for the operator, path being the page's.
func (c Cause) what(err error, path string) string {
	switch c {
	case Refused:
		return "connection refused on " + path
	case TimedOut:
		return "no page from " + path + " in time"
	case Broken:
		return "connection broken on " + path
	case NoRoute:
		return fmt.Sprintf("%s not reached: %v", path, err)
	default:
		return fmt.Sprintf("%v on %s", err, path)
	}
}

// remedy says what the operator can do about it; empty where only the server can be looked after.
func (c Cause) remedy(err error) string {
	var status statusError
	switch {
	case errors.As(err, &status) && (status == 401 || status == 403):
		return "let the page be read without credentials"
	case c == BadStatus, c == BadAnswer:
		return "set metrics: to the path of its page"
	case errors.Is(err, errModels):
		return "set model: to the name on its page"
	case c == NoSeries:
		return "set engine: and metrics: to what it is"
	}
	return ""
}
