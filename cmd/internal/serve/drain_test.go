package serve

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestB47Drain: after the signal the service is not ready, still takes what comes, lets running answers end
// and cuts only what outlives the drain period. Nothing stays in the ledger.
func TestB47Drain(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "e1")
	c := testConfig()
	c.Drain.Timeout = 2 * time.Second
	l := newLab(t, c, Deps{Endpoints: endpoints(e)})
	ends, endless := l.start("hold on"), l.start("for ever")
	l.drain()
	l.eventually("not ready", func() bool {
		status, body := l.admin("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
	if a := l.post(context.Background(), "late"); !a.complete() {
		t.Errorf("a request that came while draining: %+v", a)
	}
	close(e.release)
	if a := <-ends; !a.complete() {
		t.Errorf("a running answer: %+v", a)
	}
	select {
	case <-l.done:
		t.Error("it did not wait for the answer that has no end")
	default:
	}
	if a := <-endless; a.complete() || a.err == nil {
		t.Errorf("an answer without end: %+v", a)
	}
	<-l.done
	if l.err != nil {
		t.Error(l.err)
	}
	if n := l.inflight(); n != 0 {
		t.Errorf("%d requests in the ledger", n)
	}
}

// TestB47SecondSignal: a drain can be ended at once.
func TestB47SecondSignal(t *testing.T) {
	c := testConfig()
	c.Drain.Timeout = time.Hour
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	endless := l.start("for ever")
	l.drain()
	l.eventually("draining", l.draining.Load)
	l.Stop()
	<-l.done
	if a := <-endless; a.complete() {
		t.Errorf("%+v", a)
	}
	if n := l.inflight(); n != 0 || l.err != nil {
		t.Errorf("%d requests in the ledger, %v", n, l.err)
	}
}

// TestB47Idle: connections that carry nothing do not delay the end.
func TestB47Idle(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Drain.Timeout = 4 * time.Second
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Fatalf("%+v", a)
	}
	l.settled()
	l.drain()
	over := time.NewTimer(c.Drain.Timeout)
	defer over.Stop()
	select {
	case <-l.done:
	case <-over.C:
		t.Error("the whole drain period was waited for")
	}
}
