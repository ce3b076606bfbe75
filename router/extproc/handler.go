package extproc

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// stream is one gRPC stream and the exchange it carries. The handler's goroutine receives; the timer
// may answer in its place while it makes a decision. Streams are reused.
type stream struct {
	s   *Server
	rpc grpc.ServerStream

	mu       sync.Mutex // guards what follows; not held while a decision is made
	x        exchange
	over     bool      // the handler has returned or is about to
	armed    time.Time // when the timer fires; zero: it does not
	timer    *time.Timer
	sent     error // why sending failed
	outgoing reply

	in  frame // the handler's own
	ask router.Ask
}

// process is the handler of ExternalProcessor.Process.
func (s *Server) process(rpc grpc.ServerStream) (err error) {
	st := s.open(rpc)
	defer func() {
		err = st.close(recover(), err)
	}()
	for {
		if err := rpc.RecvMsg(&st.in); err != nil {
			return err
		}
		n := st.receive()
		if n == decide {
			n = st.settle(st.decide())
		}
		st.in.free()
		switch n {
		case stop:
			return nil
		case fail:
			return status.Error(codes.FailedPrecondition, "the gateway does not send request headers; set request_header_mode: SEND")
		case receive, decide:
		}
	}
}

// receive takes the message and sends what it asks for.
func (st *stream) receive() next {
	st.mu.Lock()
	defer st.mu.Unlock()
	now := time.Now()
	if !st.x.begun {
		st.s.busy.add(1)
	}
	n := st.x.receive(now, &st.in)
	st.flush()
	st.arm()
	if n == receive && st.sent == nil && st.x.response.phase != idle {
		st.s.stats.Spent(Relay, time.Since(now))
	}
	return n
}

// errLeft is the decision on a request whose client left before it was made.
var errLeft = errors.New("the client left")

// decide reads the body and asks for admission and for the decision. It runs without the lock: when
// it takes too long the timer answers.
func (st *stream) decide() (time.Time, error) {
	x := &st.x
	if !x.request.unread && !x.request.alone {
		if err := x.parser.Body(&x.req, x.request.body.data); err != nil {
			return time.Time{}, err
		}
	}
	if a := st.s.admission; a != nil {
		ctx, cancel := context.WithTimeout(st.rpc.Context(), st.s.setting.limits.Queue)
		err := a.Admit(ctx, &x.req, len(x.request.body.data))
		cancel()
		if err != nil && st.rpc.Context().Err() == nil {
			return time.Time{}, err
		}
	}
	if st.rpc.Context().Err() != nil {
		return time.Time{}, errLeft
	}
	st.ask.Now, st.ask.Req, st.ask.Subset, st.ask.Narrow = time.Now(), &x.req, x.subset, x.narrow
	return st.ask.Now, st.s.router.Route(&st.ask, &x.flight)
}

// settle hands the decision to the exchange and sends what follows from it.
func (st *stream) settle(now time.Time, err error) next {
	st.mu.Lock()
	defer st.mu.Unlock()
	began := st.x.last
	n := st.x.settle(now, err)
	st.flush()
	st.s.stats.Spent(Decide, time.Since(began))
	return n
}

// flush sends what the exchange has to say. The lock is held: gRPC allows one sender at a time.
func (st *stream) flush() {
	for i, m := range st.x.out {
		st.x.out[i] = nil
		if st.sent != nil {
			m.Free()
			continue
		}
		st.outgoing.data = m
		st.sent = st.rpc.SendMsg(&st.outgoing)
		st.outgoing.data = nil
	}
	st.x.out = st.x.out[:0]
}

// arm sees to it that the timer fires no later than the exchange's deadline. It is left alone where
// it fires earlier, so that it costs nothing per message.
func (st *stream) arm() {
	at, ok := st.x.deadline()
	if !ok || !st.armed.IsZero() && !at.Before(st.armed) {
		return
	}
	st.armed = at
	d := time.Until(at)
	if st.timer == nil {
		st.timer = time.AfterFunc(d, st.fire)
	} else {
		st.timer.Reset(d)
	}
}

// fire runs on the timer's goroutine.
func (st *stream) fire() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return
	}
	st.armed = time.Time{}
	st.x.expire(time.Now())
	st.flush()
	st.arm()
}

// close ends the exchange and returns the stream's status. p is what a panic said.
func (st *stream) close(p any, err error) error {
	if p != nil {
		st.s.report(p)
	}
	st.in.free()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.over = true
	cause := fleet.ClientGone
	switch {
	case p != nil:
		cause, err = fleet.Internal, st.breakDown()
	case err == nil && st.x.refused, err != nil && st.s.cut.Load(): // decided too late; cut off
		cause = fleet.Internal
	case errors.Is(err, io.EOF):
		if err = nil; st.x.owing() {
			err = status.Error(codes.Aborted, "the gateway closed the stream before the end of the exchange")
		}
	}
	if st.sent != nil && err == nil {
		err = st.sent
	}
	if st.x.begun {
		st.s.busy.add(-1)
	}
	st.x.end(time.Now(), cause)
	st.s.closed(st, err)
	return err
}

// report logs a panic, but not every one of a flood.
func (s *Server) report(p any) {
	now := time.Now().UnixNano()
	last := s.reported.Load()
	if now-last < int64(reportEvery) || !s.reported.CompareAndSwap(last, now) {
		return
	}
	s.log.Error("panic while handling a stream; further ones are not logged for a while", "panic", p, "stack", string(debug.Stack()))
}

// reportEvery is the least time between two reports of panics.
const reportEvery = 10 * time.Second

// breakDown answers a client whose exchange broke down, where that is still possible.
func (st *stream) breakDown() error {
	x := &st.x
	x.request.deciding = false
	for _, m := range x.out { // whatever was under way is not to be trusted
		m.Free()
	}
	x.out = x.out[:0]
	if x.response.phase != idle || x.request.phase == idle || x.observe {
		return status.Error(codes.Internal, "the router failed")
	}
	x.refuse(failure())
	st.flush()
	return nil
}
