package extproc

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// TestB31ClientLeaves: every way of leaving releases what was held, exactly once.
func TestB31ClientLeaves(t *testing.T) {
	all := join(streamChat(), []message{sseHeaders(), respBody(delta("x"), false), respBody(event("[DONE]"), false), respBody("", true)})
	for n := range all {
		for _, end := range []error{errReset, io.EOF} {
			l := newLab(t, labOptions{})
			l.run(end, all[:n]...)
			l.settled()
			switch n {
			case 0:
				if l.count("ended") != 0 {
					t.Errorf("a stream without request was counted: %v", l.stats)
				}
			case 1: // never routed
				if len(l.observations()) != 0 || l.count("ended client_gone") != 1 {
					t.Errorf("unrouted request: %v", l.stats)
				}
			case len(all) - 1: // with all it came for
				if o := l.only(); o.Cause != fleet.Complete || l.count("ended ok") != 1 {
					t.Errorf("after the last event: %v, %v", o.Cause, l.stats)
				}
			default:
				if o := l.only(); o.Cause != fleet.ClientGone || l.count("ended client_gone") != 1 {
					t.Errorf("after %d messages: %v, %v", n, o.Cause, l.stats)
				}
			}
		}
	}
}

// TestB31ClientLeavesWhileQueued: a request held back by admission is never dispatched once its
// client has gone.
func TestB31ClientLeavesWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{Options: Options{Admission: admit(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})}})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*ms, cancel)
		start := time.Now()
		tr := l.play(ctx, errReset, wholeChat()...)
		if d := time.Since(start); d != 50*ms {
			t.Errorf("left after %v", d)
		}
		if l.count("began") != 0 || l.count("ended client_gone") != 1 || len(tr.replies) != 0 {
			t.Errorf("stats %v, replies %q", l.stats, tr.kinds())
		}
		l.settled()
	})
}

type admit func(ctx context.Context) error

func (a admit) Admit(ctx context.Context, _ *request.Request, _ int) error { return a(ctx) }

// TestB31SilenceIsFinite: a request nothing is heard of is released by its age or its silence, and
// its bytes still pass should it speak again.
func TestB31SilenceIsFinite(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		at     time.Duration
	}{
		"idle": {Limits{Idle: time.Minute}, time.Minute},
		"age":  {Limits{MaxAge: 30 * time.Second}, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, labOptions{Options: Options{Limits: c.limits}})
			done := make(chan transcript)
			go func() {
				done <- l.run(errReset, join(streamChat(), []message{sseHeaders().after(2 * time.Hour), respBody(delta("x"), false), respBody(event("[DONE]"), true)})...)
			}()
			time.Sleep(c.at - 1)
			synctest.Wait()
			if n := l.inflight(); n != 1 {
				t.Errorf("%s: %d in flight before the limit", name, n)
			}
			time.Sleep(2 * time.Nanosecond)
			synctest.Wait()
			if n := l.inflight(); n != 0 {
				t.Errorf("%s: %d in flight after the limit", name, n)
			}
			if o := l.only(); o.Cause != fleet.Expired {
				t.Errorf("%s: %v", name, o.Cause)
			}
			if tr := <-done; tr.kinds() != "headers body+$ HEADERS BODY+ BODY+$" || tr.err != nil {
				t.Errorf("%s: replies %q, error %v", name, tr.kinds(), tr.err)
			}
			l.only()
			l.settled()
		})
	}
}

// TestB32DecrementsHappenOnce follows one address through two instances.
func TestB32DecrementsHappenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{fleet: []string{"10.0.0.1:8000"}})
		var wg sync.WaitGroup
		start := func(msgs ...message) {
			wg.Add(1)
			go func() { defer wg.Done(); l.run(errReset, msgs...) }()
		}
		now := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := l.inflight(); n != want {
				t.Errorf("in flight %d, want %d", n, want)
			}
		}
		endpoint := func() *fleet.Endpoint {
			var s fleet.Snapshot
			l.fleet.Snapshot(time.Now(), &s)
			return s.States[0].Endpoint
		}
		a := endpoint()
		start(join(streamChat(), []message{sseHeaders(), respBody(event("[DONE]"), true).after(4 * time.Second), unknown().after(5 * time.Second)})...)
		now(1)
		if _, err := l.fleet.Sync(time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		b := *a
		if _, err := l.fleet.Sync(time.Now(), []*fleet.Endpoint{&b}); err != nil {
			t.Fatal(err)
		}
		now(0) // the new instance inherits nothing
		start(join(streamChat(), []message{sseHeaders().after(6 * time.Second), respBody(delta("x"), false), respBody(event("[DONE]"), true).after(7 * time.Second)})...)
		now(1)
		time.Sleep(4500 * ms) // the first request's answer ends, then its stream
		now(1)
		time.Sleep(1000 * ms)
		now(1)
		time.Sleep(1000 * ms) // the second one's answer is under way
		now(1)
		time.Sleep(1000 * ms)
		now(0)
		wg.Wait()
		l.settled()
		if n := len(l.observations()); n != 2 {
			t.Errorf("%d observations", n)
		}
	})
}

// TestB33EqualRequestIDs: streams share nothing, whatever their clients call them.
func TestB33EqualRequestIDs(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, id := range [][]string{{"x-request-id", "r-1"}, nil, {"x-request-id", ""}} {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				body := fmt.Appendf(nil, `{"model":"demo","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat(string(rune('a'+i)), 5000))
				msgs := []message{chat(fds, id...)}
				for b := body; len(b) > 0; b = b[min(len(b), 100):] {
					msgs = append(msgs, reqBody(b[:min(len(b), 100)], false))
				}
				msgs = append(msgs, reqBody(nil, true), sseHeaders())
				answer := strings.Repeat(delta(string(rune('A'+i))), 50) + event(fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":50}}`, 100+i)) + event("[DONE]")
				for b := answer; len(b) > 0; b = b[min(len(b), 60):] {
					msgs = append(msgs, respBody(b[:min(len(b), 60)], false))
				}
				tr := l.run(errReset, append(msgs, respBody("", true))...)
				sent, answered := tr.bodies()
				equalBytes(t, "request body", sent, body)
				equalBytes(t, "response body", answered, []byte(answer))
			}()
		}
		wg.Wait()
	}
	prompts := map[int]int{}
	for _, o := range l.observations() {
		if o.Cause != fleet.Complete || o.OutputTokens != 50 {
			t.Errorf("observed %+v", o)
		}
		prompts[o.PromptTokens]++
	}
	for i := range 8 {
		if prompts[100+i] != 3 {
			t.Errorf("prompts %v", prompts)
		}
	}
	l.settled()
}

// TestB33ReloadWhileServing: what can be changed is changed while streams run; none is lost and each
// ends in order.
func TestB33ReloadWhileServing(t *testing.T) {
	l := newLab(t, labOptions{})
	conn := l.dial(insecure.NewCredentials(), l.server.Serve)
	var streams, changes sync.WaitGroup
	stop := make(chan struct{})
	change := func(f func(n int)) {
		changes.Add(1)
		go func() {
			defer changes.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					f(n)
				}
			}
		}()
	}
	change(func(n int) { l.server.SetAnswer(Answer{Endpoints: n%3 + 1, DecisionHeader: n%2 == 0}) })
	change(func(n int) { l.server.SetReady(n%2 == 0) })
	change(func(int) { l.server.SetParser(l.server.parser.Load()) })
	change(func(n int) { l.server.router.SetPolicy(first{}) })
	change(func(n int) {
		var eps []*fleet.Endpoint
		for i := range n%3 + 1 {
			eps = append(eps, &fleet.Endpoint{Name: fmt.Sprintf("ep-%d", i+1), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000), Model: "demo", TP: 1})
		}
		if _, err := l.fleet.Sync(time.Now(), eps); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		streams.Add(1)
		go func() {
			defer streams.Done()
			for range 50 {
				c := startCall(t, conn, wholeChat("x-request-id", "r-1")...)
				if got := c.recv(2); got != "headers body+$" {
					t.Errorf("replies %q", got)
				}
				c.send(ok()...)
				c.recv(3)
				if err := c.end(); err != nil {
					t.Errorf("ended with %v", err)
				}
			}
		}()
	}
	streams.Wait()
	close(stop)
	changes.Wait()
	if l.count("ended ok") != 200 {
		t.Errorf("stats %v", l.stats)
	}
}
