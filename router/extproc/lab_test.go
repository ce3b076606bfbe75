package extproc

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// first is the policy of most tests: the first candidate, the others as fallbacks in order.
type first struct {
	before func(q *router.Query) error // may be nil
}

func (first) Name() string { return "first" }

func (p first) Route(q *router.Query, d *router.Decision) error {
	if p.before != nil {
		if err := p.before(q); err != nil {
			return err
		}
	}
	for i, k := range q.Keep {
		switch {
		case k && d.Index < 0:
			d.Index, d.Propensity = i, 1
		case k:
			d.Fallback = append(d.Fallback, i)
		}
	}
	return nil
}

// tester is a test, a fuzz target or a property.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// lab is a service with a fleet of three, and everything it says to others.
type lab struct {
	t      tester
	fleet  *fleet.Fleet
	server *Server
	pool   *poison

	mu    sync.Mutex
	seen  []features.Observation
	stats map[string]int
}

type labOptions struct {
	Options
	policy   router.Policy
	forecast *predictor.Handle // nil: nothing is foretold
	fleet    []string          // addresses
	config   request.Config
	strict   bool
}

func newLab(t tester, o labOptions) *lab {
	t.Helper()
	l := &lab{t: t, fleet: new(fleet.Fleet), stats: map[string]int{}, pool: new(poison)}
	if o.fleet == nil {
		o.fleet = []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"}
	}
	var eps []*fleet.Endpoint
	for i, a := range o.fleet {
		eps = append(eps, &fleet.Endpoint{Name: fmt.Sprintf("ep-%d", i+1), Addr: netip.MustParseAddrPort(a), Model: "demo", TP: 1})
	}
	if _, err := l.fleet.Sync(time.Now(), eps); err != nil {
		t.Fatal(err)
	}
	if o.policy == nil {
		o.policy = first{}
	}
	if o.Limits.Decision == 0 {
		o.Limits.Decision = time.Hour // however slow the machine is
	}
	o.Router = router.New(router.Options{Fleet: l.fleet, Policy: o.policy, Observer: l, Strict: o.strict, Forecast: o.forecast})
	var err error
	if o.Parser, err = request.NewParser(o.config); err != nil {
		t.Fatal(err)
	}
	if o.Stats == nil {
		o.Stats = l
	}
	if l.server, err = New(o.Options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.server.Stop)
	return l
}

func (l *lab) Observe(o *features.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, *o)
}

func (l *lab) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats[fmt.Sprintf(format, args...)]++
}

func (l *lab) StreamOpened()                  { l.note("opened") }
func (l *lab) StreamClosed(code string)       { l.note("closed"); l.note("closed %s", code) }
func (l *lab) Spent(p Phase, d time.Duration) { l.note("spent %s", p) }
func (l *lab) Began(string)                   { l.note("began") }
func (l *lab) Ended(_ string, routed bool, o Outcome) {
	l.note("ended")
	l.note("ended %s", o)
	if routed {
		l.note("ended routed")
	}
}
func (l *lab) Refused(code int, reason string) { l.note("refused %d %s", code, reason) }
func (l *lab) BadUsage()                       { l.note("bad usage") }

func (l *lab) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats[what]
}

func (l *lab) observations() []features.Observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// only returns the one record there must be.
func (l *lab) only() features.Observation {
	l.t.Helper()
	seen := l.observations()
	if len(seen) != 1 {
		l.t.Fatalf("%d observations, want 1: %+v", len(seen), seen)
	}
	return seen[0]
}

// inflight returns the open requests of every endpoint.
func (l *lab) inflight() (total int) {
	var s fleet.Snapshot
	l.fleet.Snapshot(time.Now(), &s)
	for _, e := range s.States {
		if e.Requests < 0 {
			l.t.Errorf("%s: %d requests in flight", e.Name, e.Requests)
		}
		total += int(e.Requests)
	}
	return total
}

// settled checks what must hold whenever no stream is open: nothing is in flight, no body is held,
// and what began has ended.
func (l *lab) settled() {
	l.t.Helper()
	if n := l.inflight(); n != 0 {
		l.t.Errorf("%d requests in flight at the end", n)
	}
	if n := l.server.setting.memory.budget.used.Load(); n != 0 {
		l.t.Errorf("%d bytes of bodies held at the end", n)
	}
	if b, e := l.count("began"), l.count("ended routed"); b != e {
		l.t.Errorf("%d requests began, %d ended", b, e)
	}
	if o, c := l.count("opened"), l.count("closed"); o != c {
		l.t.Errorf("%d streams opened, %d closed", o, c)
	}
	if n := l.pool.lent.Load(); n != 0 {
		l.t.Errorf("%d receive buffers not given back", n)
	}
}

// Messages from the gateway.

var (
	fds      = modes{filter.ProcessingMode_FULL_DUPLEX_STREAMED, filter.ProcessingMode_FULL_DUPLEX_STREAMED}
	buffered = modes{filter.ProcessingMode_BUFFERED, filter.ProcessingMode_BUFFERED}
	streamed = modes{filter.ProcessingMode_STREAMED, filter.ProcessingMode_STREAMED}
	none     = modes{}
)

func isReset(err error) bool { return errors.Is(err, errReset) }

func equalBytes(t tester, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, want %d, or other bytes", what, len(got), len(want))
	}
}
