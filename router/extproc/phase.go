package extproc

import "github.com/presage-router/presage/router/extproc/wire"

// phase is what one direction of an exchange has come to. The gateway sends, in each direction,
// headers, then body, then trailers, as far as there are any; it is owed replies in the same order.
type phase uint8

const (
	idle         phase = iota // nothing has come
	headersOwed               // the headers wait for their reply, and in full duplex all that follows them
	bodyOwed                  // the headers are answered; the body goes on, or waits for its reply
	trailersOwed              // the body is sent back; the trailers wait for their reply
	done                      // nothing is owed and nothing more is expected
)

// String returns the phase's name in test output.
func (p phase) String() string {
	return [...]string{"idle", "headers owed", "body owed", "trailers owed", "done"}[p]
}

// next is what is to be done after a message.
type next uint8

const (
	receive next = iota // the next message
	decide              // the request is complete: route it, then settle
	stop                // end the stream, status OK: nothing is owed any more
	fail                // end the stream with an error: the gateway does not show us the headers
)

// duplex reports whether the gateway takes a stream's end for the end of the body it is owed.
func duplex(m wire.Mode) bool { return m == wire.FullDuplex }

// whole reports whether a body comes in one message, after the headers were answered.
func whole(m wire.Mode) bool { return m == wire.Buffered || m == wire.BufferedPartial }
