package zmtp

import (
	"context"
	"net"
)

// Answer sends one message to the peer that asked.
type Answer func(frames ...[]byte) error

// ServeRouter accepts peers of a ROUTER socket until ctx ends. Each of their messages is handed to
// handle, without the empty frame that a REQ socket puts first; answers get it back. handle is
// called concurrently for different peers, and ends the connection by an error.
func ServeRouter(ctx context.Context, l net.Listener, handle func(request [][]byte, answer Answer) error) error {
	return serve(ctx, l, func(_ context.Context, c net.Conn) {
		z, err := accept(c, "ROUTER", "REQ", "DEALER", "ROUTER")
		if err != nil {
			return
		}
		for {
			m, err := z.message(z.ponging)
			if err != nil {
				return
			}
			var envelope [][]byte
			if len(m) > 1 && len(m[0]) == 0 {
				envelope, m = m[:1], m[1:]
			}
			err = handle(m, func(frames ...[]byte) error {
				return z.send(append(envelope[:len(envelope):len(envelope)], frames...))
			})
			if err != nil || z.w.Flush() != nil {
				return
			}
		}
	})
}

// ponging answers PING commands.
func (z *conn) ponging(command []byte) error {
	answer := pong(command)
	if answer == nil {
		return nil
	}
	if err := z.write(flagCommand, answer); err != nil {
		return err
	}
	return z.w.Flush()
}
