package extproc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// TestP31DecisionDeadline: the client is answered in time even while a policy hangs, and nothing is
// left of the decision that comes too late.
func TestP31DecisionDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{
			Options: Options{Limits: Limits{Decision: 3 * time.Second}},
			policy: first{before: func(*router.Query) error {
				time.Sleep(time.Minute)
				return nil
			}},
		})
		tr := l.run(errReset, wholeChat()...)
		checkRefusal(t, tr, 503, ReasonDeadline)
		if len(tr.at) != 1 || tr.at[0] != 3*time.Second {
			t.Errorf("answered after %v", tr.at)
		}
		if o := l.only(); o.Cause != fleet.Internal { // it was reserved, for nobody
			t.Errorf("observed %v", o.Cause)
		}
		if l.count("began") != 0 || l.count("ended internal") != 1 || l.count("refused 503 "+ReasonDeadline) != 1 {
			t.Errorf("stats %v", l.stats)
		}
		l.settled()
	})
}

// TestB06SilentBodies: a body that stops coming is given up, and its memory with it.
func TestB06SilentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{Options: Options{Limits: Limits{BodyIdle: 10 * time.Second}}})
		slow := chatBody
		tr := l.run(errReset, chat(fds), reqBody(slow[:5], false).after(9*time.Second), reqBody(slow[5:], true).after(18*time.Second))
		if tr.kinds() != "headers body+$" {
			t.Errorf("a slow body: replies %q", tr.kinds())
		}
		tr = l.run(errReset, chat(fds), reqBody(slow[:5], false).after(time.Second), message{at: time.Hour})
		checkRefusal(t, tr, 408, ReasonBodyTimeout)
		if tr.at[0] != 11*time.Second {
			t.Errorf("given up after %v", tr.at[0])
		}
		l.settled()
	})
}

// TestStreamsWithoutARequestAreLeftAlone: no timer ends them; keepalive does when their peer is dead.
func TestStreamsWithoutARequestAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{})
		if tr := l.run(errReset, message{at: 24 * time.Hour}); len(tr.replies) != 0 {
			t.Errorf("replies %q", tr.kinds())
		}
		l.settled()
	})
}

// TestPanics: a failing part of the router costs one request, never the process, and the client is
// told where that is still possible.
func TestPanics(t *testing.T) {
	boom := admit(func(context.Context) error { panic("boom") })
	for name, m := range map[string]modes{"full duplex": fds, "streamed": streamed, "none": none} {
		l := newLab(t, labOptions{Options: Options{Admission: boom}})
		tr := l.run(errReset, chat(m), reqBody(chatBody, true))
		checkRefusal(t, tr, 500, ReasonInternal)
		if tr.err != nil || l.count("ended internal") != 1 {
			t.Errorf("%s: error %v, stats %v", name, tr.err, l.stats)
		}
		l.settled()
	}
	// once the response has begun only the stream itself can fail
	l := newLab(t, labOptions{Options: Options{Stats: &brittle{}}})
	tr := l.run(errReset, join(wholeChat(), ok())...)
	if status.Code(tr.err) != codes.Internal || tr.immediate() != nil {
		t.Errorf("replies %q, error %v", tr.kinds(), tr.err)
	}
	if o := l.only(); o.Cause != fleet.Internal {
		t.Errorf("observed %v", o.Cause)
	}
	if n := l.inflight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// brittle breaks in the response.
type brittle struct{ noStats }

func (*brittle) Spent(p Phase, _ time.Duration) {
	if p == Relay {
		panic("boom")
	}
}

// TestPolicyErrors: what a policy or admission says is what the client is told.
func TestPolicyErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		reason string
		ended  string
	}{
		{router.ErrSaturated, 429, ReasonSaturated, "shed"},
		{fmt.Errorf("pool: %w", router.ErrNoEndpoint), 503, ReasonNoEndpoint, "no_endpoint"},
		{errors.New("no idea"), 500, ReasonInternal, "internal"},
		{shed{}, 429, "rejected-ttl-expired", "shed"},
	} {
		l := newLab(t, labOptions{policy: first{before: func(*router.Query) error { return c.err }}})
		checkRefusal(t, l.run(errReset, wholeChat()...), c.status, c.reason)
		if l.count("ended "+c.ended) != 1 {
			t.Errorf("%v: %v", c.err, l.stats)
		}
		l.settled()
	}
	l := newLab(t, labOptions{Options: Options{Admission: admit(func(context.Context) error { return shed{} })}})
	tr := l.run(errReset, wholeChat()...)
	checkRefusal(t, tr, 429, "rejected-ttl-expired")
	retry := ""
	for _, h := range tr.immediate().GetHeaders().GetSetHeaders() {
		if h.Header.Key == "retry-after" {
			retry = string(h.Header.RawValue)
		}
	}
	if retry != "2" {
		t.Errorf("retry-after %q, want 2", retry)
	}
	l.settled()
}

type shed struct{}

func (shed) Error() string { return "the request waited too long" }
func (shed) Refusal() (int, string, time.Duration) {
	return 429, "rejected-ttl-expired", 1500 * time.Millisecond
}

// TestP30GlobalByteBudget: bodies that are being read share a budget; what does not fit is refused
// at once, and the others are not harmed.
func TestP30GlobalByteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, limit = 1 << 20, 8 << 20 // a hundred of them, as 8 MiB against 64 would be
		body := long(size)
		l := newLab(t, labOptions{Options: Options{Limits: Limits{TotalBytes: limit}}})
		var wg sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * ms)
				msgs := []message{chat(fds)}
				for b := body; len(b) > 0; b = b[min(len(b), 1<<17):] {
					msgs = append(msgs, reqBody(b[:min(len(b), 1<<17)], false))
				}
				tr := l.run(errReset, append(msgs, reqBody(nil, true).after(time.Second))...)
				mu.Lock()
				defer mu.Unlock()
				if tr.immediate() != nil {
					checkRefusal(t, tr, 503, ReasonMemory)
					got["refused"]++
					return
				}
				sent, _ := tr.bodies()
				equalBytes(t, "body", sent, body)
				got["routed"]++
			})
		}
		peak := int64(0)
		for range 200 {
			time.Sleep(ms)
			synctest.Wait()
			peak = max(peak, l.server.setting.memory.budget.used.Load())
		}
		wg.Wait()
		if peak == 0 || peak > limit {
			t.Errorf("peak of %d bytes, limit %d", peak, limit)
		}
		if got["routed"] == 0 || got["refused"] == 0 || got["routed"]+got["refused"] != 100 {
			t.Errorf("got %v", got)
		}
		l.settled()
	})
}

// TestB06ManySmallChunks: memory follows what has arrived, not what was declared, however small the
// pieces are.
func TestB06ManySmallChunks(t *testing.T) {
	l := newLab(t, labOptions{})
	body := long(200_000)
	tr := l.run(errReset, join([]message{chat(fds, "content-length", "60000000")}, chunked(body, 16))...)
	sent, _ := tr.bodies()
	equalBytes(t, "body", sent, body)
	l.settled()

	m := l.server.setting.memory
	var b piled
	f := &frame{}
	f.Body = make([]byte, 16)
	for range 1000 {
		if _, ok := b.add(f, 60_000_000, m); !ok {
			t.Fatal("refused")
		}
		if b.held > 1<<20 {
			t.Fatalf("%d bytes held for %d received", b.held, len(b.data))
		}
	}
	b.free(m)
	l.settled()
}

// piled is body, whose name the test needs for the bytes.
type piled = body

// TestB31ManyClientsLeave: a thousand streams that are cut off leave nothing behind; a goroutine of
// theirs that stays would keep the bubble from ending.
func TestB31ManyClientsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { l.run(errReset, wholeChat()...) })
		}
		wg.Wait()
		if l.count("ended client_gone") != 1000 {
			t.Errorf("stats %v", l.stats)
		}
		l.settled()
	})
}
