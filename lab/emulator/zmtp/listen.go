package zmtp

import (
	"context"
	"errors"
	"net"
	"sync"
)

// maxPeers bounds the connections to one socket.
const maxPeers = 256

// serve accepts connections until ctx ends, then closes them all and waits for their goroutines.
func serve(ctx context.Context, l net.Listener, handle func(context.Context, net.Conn)) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	slots := make(chan struct{}, maxPeers)
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = c.Close() }()
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			handle(ctx, c)
		})
	}
}
