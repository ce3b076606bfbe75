package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Defaults of [Scraper].
const (
	DefaultInterval = 200 * time.Millisecond
	DefaultSlowest  = time.Second
	DefaultTimeout  = time.Second
	DefaultMaxPage  = 8 << 20
)

// Scraper keeps the loads of a fleet up to date by reading every endpoint's metrics page. Set the
// fields before [Scraper.Run]; zero fields mean defaults, only Fleet is needed.
//
// One loop wakes up every Interval, asks all endpoints that are due in one go over connections it
// keeps, and then reads their answers one after the other; those that do not answer within a short
// grace are left to goroutines of their own, so that one slow endpoint holds up nobody. An endpoint
// with work is due every Interval. One without (no request of ours open, two equal pages without
// running and waiting requests) is due every Slowest: only foreign traffic could change its gauges,
// and a request of ours makes it due at the next tick. One that fails is due after at most 1, 2, 4,
// ... intervals, and Slowest: so long it takes until a recovery is seen, or a timeout longer where
// the server hangs.
type Scraper struct {
	Fleet    *fleet.Fleet
	Interval time.Duration // between scrapes of an endpoint with work; 0: DefaultInterval
	Slowest  time.Duration // between scrapes of an idle or failing one; 0: DefaultSlowest, or Interval if longer
	Timeout  time.Duration // of one scrape; 0: DefaultTimeout
	Stale    time.Duration // age from which a page is not believed; 0: DefaultStale, or Slowest + 2 Timeout if longer
	Probe    time.Duration // see Trust; 0: DefaultProbe
	MaxPage  int64         // bytes of a page, as sent and inflated; 0: DefaultMaxPage
	Log      *slog.Logger  // nil: nothing is logged
	// Dial opens a connection; nil: TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

	mu      sync.Mutex // guards targets: the loop writes, Stats reads
	targets map[uint64]*target

	wg       sync.WaitGroup
	snap     fleet.Snapshot
	batch    []*target
	buf      []byte
	bufs     sync.Pool
	messages messages
}

// grace is how long the loop waits for the answers of one batch before it leaves the rest to
// goroutines. A busy Python engine needs some ten milliseconds for its page.
const grace = 50 * time.Millisecond

func (s *Scraper) interval() time.Duration { return or(s.Interval, DefaultInterval) }

// slowest is Slowest in ticks.
func (s *Scraper) slowest() int64 {
	d := or(s.Slowest, max(DefaultSlowest, s.interval()))
	return max(1, int64(d/s.interval()))
}

func (s *Scraper) timeout() time.Duration { return or(s.Timeout, DefaultTimeout) }

func (s *Scraper) limit() int64 { return or(s.MaxPage, DefaultMaxPage) }

func or[T int64 | time.Duration](v, byDefault T) T {
	if v == 0 {
		return byDefault
	}
	return v
}

// Trust returns the trust that fits the scraper's intervals, for those who use the loads.
func (s *Scraper) Trust() Trust {
	oldest := time.Duration(s.slowest())*s.interval() + 2*s.timeout()
	return Trust{Stale: or(s.Stale, max(DefaultStale, oldest)), Probe: or(s.Probe, DefaultProbe)}
}

// Validate checks the fields against each other.
func (s *Scraper) Validate() error {
	slowest := time.Duration(s.slowest()) * s.interval()
	switch {
	case s.Fleet == nil:
		return fmt.Errorf("scrape: no fleet")
	case s.interval() < 10*time.Millisecond:
		return fmt.Errorf("scrape.interval: %v is too short; write 10ms or more", s.Interval)
	case s.timeout() < 0 || s.limit() < 0 || s.Slowest < 0 || s.Probe < 0:
		return fmt.Errorf("scrape: a negative setting; leave it out for its default")
	case s.Trust().Stale <= slowest:
		return fmt.Errorf("scrape.stale: %v is not longer than the longest interval %v: every page would be stale before the next", s.Stale, slowest)
	}
	return nil
}

// Run scrapes until ctx is done; then it has no connection and no goroutine left. It fails at once
// on settings that [Scraper.Validate] refuses. It may run once.
func (s *Scraper) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	s.buf = make([]byte, 64<<10)
	s.bufs.New = func() any { b := make([]byte, 32<<10); return &b }
	ticker := time.NewTicker(s.interval())
	defer ticker.Stop()
	for tick := int64(0); ctx.Err() == nil; tick++ {
		s.round(ctx, tick)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	s.wg.Wait()
	for _, t := range s.targets {
		t.hangUp()
	}
	return nil
}

// round scrapes what is due at a tick.
func (s *Scraper) round(ctx context.Context, tick int64) {
	now := time.Now()
	s.follow(now)
	s.batch = s.batch[:0]
	for i := range s.snap.States {
		st := &s.snap.States[i]
		t := s.targets[st.Instance]
		if t.busy.Load() || !t.due(st, tick, s.slowest()) {
			continue
		}
		t.busy.Store(true)
		t.state, t.tick, t.began = *st, tick, now
		t.answer.reset(s.limit())
		t.describe(st.Endpoint)
		if t.conn == nil || t.slow {
			s.hand(ctx, t, t.whole)
			continue
		}
		if t.conn.SetDeadline(now.Add(grace)) != nil || t.send(s.limit()) != nil {
			t.hangUp()
			s.hand(ctx, t, t.whole)
			continue
		}
		s.batch = append(s.batch, t)
	}
	for _, t := range s.batch {
		switch err := t.receive(s.buf); {
		case err != nil && isTimeout(err):
			s.hand(ctx, t, t.remainder)
		case err != nil && !t.answer.begun(): // the server had closed the kept connection
			t.hangUp()
			s.hand(ctx, t, t.whole)
		default:
			s.finish(t, err)
		}
	}
}

// remainder goes on with an answer that did not come within the grace.
func (t *target) remainder(ctx context.Context, s *Scraper, buf []byte) error {
	return t.exchange(ctx, t.began.Add(s.timeout()), func() error { return t.receive(buf) })
}

// hand leaves the rest of a scrape to a goroutine.
func (s *Scraper) hand(ctx context.Context, t *target, scrape func(context.Context, *Scraper, []byte) error) {
	s.wg.Go(func() {
		buf := s.bufs.Get().(*[]byte)
		err := scrape(ctx, s, *buf)
		s.bufs.Put(buf)
		if ctx.Err() == nil { // a scrape cut off by the end of Run says nothing about the endpoint
			s.finish(t, err)
		}
	})
}

// follow makes the targets those of the fleet.
func (s *Scraper) follow(now time.Time) {
	s.Fleet.Snapshot(now, &s.snap)
	s.messages.count(s.Trust(), &s.snap)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.targets == nil {
		s.targets = make(map[uint64]*target)
	}
	for i := range s.snap.States {
		st := &s.snap.States[i]
		if s.targets[st.Instance] == nil {
			s.targets[st.Instance] = &target{tick: -1, load: &fleet.Load{}}
		}
	}
	if len(s.targets) == len(s.snap.States) {
		return
	}
	present := make(map[uint64]bool, len(s.snap.States))
	for i := range s.snap.States {
		present[s.snap.States[i].Instance] = true
	}
	for id, t := range s.targets {
		if !present[id] && !t.busy.Load() { // a busy one is dropped once it is done
			t.hangUp()
			delete(s.targets, id)
		}
	}
}

// finish stores what a scrape brought and lets go of the target.
func (s *Scraper) finish(t *target, err error) {
	now := time.Now()
	took := now.Sub(t.began)
	var l *fleet.Load
	var r Report
	if err == nil {
		l, r, err = t.read(s.limit())
	}
	if err == nil {
		t.memory.keep(l, t.load, now, s.Trust().Stale)
		l.Own = t.state.Requests
	} else {
		failed := *t.load
		failed.Errors++
		failed.Unreachable = t.answer.status == 0
		l = &failed
	}
	if t.answer.step != complete || t.answer.close {
		t.hangUp()
	}
	if cap(t.zipped) > 64<<10 {
		t.zipped = nil
	}
	t.load, t.slow = l, took > grace
	ref := fleet.Ref{Slot: t.state.Slot, Instance: t.state.Instance, Endpoint: t.state.Endpoint}
	if s.Fleet.SetLoad(ref, l) {
		t.state.Load = l
		s.record(t, now, took, r, err)
	}
	t.busy.Store(false)
}

// record keeps the statistics of a scrape and tells the log about failures.
func (s *Scraper) record(t *target, now time.Time, took time.Duration, r Report, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := &t.status
	st.Name, st.Addr, st.Path, st.Took, st.Error = t.state.Name, t.state.Addr, t.path, took, ""
	if err == nil {
		st.Pages++
		st.Refused += uint64(r.Refused)
		st.Missing += uint64(bits.OnesCount16(uint16(r.Missing)))
		s.messages.recovered(s.Log, t, now)
		return
	}
	c := causeOf(err)
	st.Failures[c]++
	st.Error = c.what(err, t.path)
	s.messages.failed(s.Log, t, now, s.Trust(), c, err)
}

// dial opens a connection.
func (s *Scraper) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr.String())
}
