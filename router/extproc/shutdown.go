package extproc

import (
	"context"
	"sync"
	"time"
)

// settleTime is how long no stream may carry anything before the connections are closed under those
// that carry nothing: the last replies are still being written, and a new stream may be on its way.
const settleTime = 200 * time.Millisecond

// Shutdown ends the service without cutting an answer: the health service says not serving; for the
// time of Linger new requests are still taken; then the gateway's connections are told to go away
// and what runs runs to its end, until ctx ends. Streams that carry nothing are not waited for. It
// returns when all is over, at once after Stop.
func (s *Server) Shutdown(ctx context.Context) {
	s.health.drain()
	s.pause(ctx, s.linger)
	graceful := make(chan struct{})
	go func() {
		s.rpc.GracefulStop()
		close(graceful)
	}()
	for waiting := true; waiting; {
		select {
		case <-graceful:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-s.stopped:
			waiting = false
		case <-s.busy.empty():
			s.pause(ctx, settleTime)
			waiting = s.busy.count() > 0
		}
	}
	s.Stop()
	<-graceful
}

// pause waits, unless ctx ends or the service is stopped.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.stopped:
	}
}

// Stop ends the service at once. What is still open counts as our own failure; Stop waits for it to
// be counted, but not for a decision that hangs.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.cut.Store(true)
		close(s.stopped)
	})
	s.health.stop()
	s.rpc.Stop()
	s.side.Stop()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-s.busy.empty():
	case <-t.C:
	}
}

// occupancy counts what is going on. The zero value counts from 0.
type occupancy struct {
	mu      sync.Mutex
	n       int
	waiting chan struct{} // closed when n falls to 0; nil: nobody waits
}

func (o *occupancy) add(d int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n += d; o.n == 0 && o.waiting != nil {
		close(o.waiting)
		o.waiting = nil
	}
}

func (o *occupancy) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// empty returns a channel that is closed once nothing is going on.
func (o *occupancy) empty() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == 0 {
		c := make(chan struct{})
		close(c)
		return c
	}
	if o.waiting == nil {
		o.waiting = make(chan struct{})
	}
	return o.waiting
}
