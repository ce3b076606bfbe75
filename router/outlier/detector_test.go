package outlier

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

var t0 = time.Unix(1000, 0)

// field is a detector with a fleet of endpoints that do as they are told.
type field struct {
	*Detector
	now   time.Time
	snap  fleet.Snapshot
	rng   *rand.Rand
	keep  []bool
	out   []string
	tries map[uint64][]time.Time // probes by instance
	last  uint64                 // instance
}

func newField(n int) *field {
	f := &field{Detector: &Detector{}, now: t0, rng: rand.New(rand.NewPCG(1, 2)), tries: map[uint64][]time.Time{}}
	for range n {
		f.join("m")
	}
	return f
}

// join adds an endpoint.
func (f *field) join(model string) {
	f.last++
	load := &fleet.Load{At: f.now}
	f.snap.States = append(f.snap.States, fleet.State{
		Endpoint: &fleet.Endpoint{Name: fmt.Sprintf("e%d", f.last), Model: model}, Load: load, Slot: f.snap.Slots, Instance: f.last, Since: f.now,
	})
	f.snap.Slots++
}

func (f *field) ref(i int) fleet.Ref {
	s := &f.snap.States[i]
	return fleet.Ref{Slot: s.Slot, Instance: s.Instance, Endpoint: s.Endpoint}
}

func (f *field) screen(stream bool) (probe int) {
	f.keep, f.out = f.keep[:0], f.out[:0]
	for i := range f.snap.States {
		f.keep, f.out = append(f.keep, !f.snap.States[i].Drain), append(f.out, "")
	}
	return f.Screen(f.now, &f.snap, stream, f.rng, f.keep, f.out)
}

// send dispatches a request: to the endpoint under test, or to whoever is tried out.
func (f *field) send(to int, stream bool) (at int, s Start) {
	probe := f.screen(stream)
	if probe >= 0 {
		to = probe
		id := f.snap.States[to].Instance
		f.tries[id] = append(f.tries[id], f.now)
	}
	s = Start{At: f.now, Stream: stream, Probe: probe >= 0, Uncached: 100}
	f.Begin(f.ref(to), &s)
	return to, s
}

func (f *field) fail(i, times int) {
	for range times {
		s := Start{At: f.now}
		f.Begin(f.ref(i), &s)
		f.Finish(f.now, f.ref(i), &s, &End{Cause: fleet.UpstreamError, Status: 500})
	}
}

func (f *field) state(i int) State { return f.accounts[f.snap.States[i].Slot].state }

func (f *field) pass(d time.Duration) { f.now = f.now.Add(d) }

// TestNewInstanceStartsAnew: what an endpoint did does not stick to the next one in its slot, which
// starts slowly because the fleet runs.
func TestNewInstanceStartsAnew(t *testing.T) {
	f := newField(4)
	f.screen(true)
	f.fail(0, 3)
	if f.state(0) != Ejected || f.state(1) != Working {
		t.Fatal(f.Report(nil))
	}
	old := f.ref(0)
	f.last++
	f.snap.States[0].Instance = f.last
	f.screen(true)
	if f.state(0) != Warming {
		t.Fatal(f.Report(nil))
	}
	f.Finish(f.now, old, &Start{At: f.now}, &End{Cause: fleet.UpstreamError, Status: 500}) // late word of the old one
	if a := f.accounts[0]; a.row != 0 || a.fails != 0 {
		t.Errorf("%+v", a)
	}
	share := func() float64 {
		n := 0
		for range 2000 {
			f.screen(true)
			if f.keep[0] {
				n++
			}
		}
		return float64(n) / 2000
	}
	first := share()
	f.pass(rampTime / 2)
	second := share()
	f.pass(rampTime / 2)
	if third := share(); first > 0.15 || first < 0.05 || second < 0.5 || second > 0.6 || third != 1 {
		t.Errorf("chances %.2f, %.2f, %.2f", first, second, third)
	}
}

// TestProbesBackOff: a dead endpoint costs ever fewer requests; one that flaps is not forgiven until
// it has been good for two minutes.
func TestProbesBackOff(t *testing.T) {
	f := newField(4)
	f.screen(false)
	f.fail(0, 3)
	run := func(d time.Duration, probe func(s Start, at int)) (gaps []time.Duration) {
		from := len(f.tries[1])
		for end := f.now.Add(d); f.now.Before(end); f.pass(100 * time.Millisecond) {
			if at, s := f.send(1, false); s.Probe {
				probe(s, at)
			}
		}
		last := f.tries[1][max(from-1, 0)]
		for _, at := range f.tries[1][from:] {
			gaps = append(gaps, at.Sub(last))
			last = at
		}
		return gaps
	}
	refuse := func(s Start, at int) { f.Finish(f.now, f.ref(at), &s, &End{Cause: fleet.UpstreamError, Status: 503}) }
	gaps := fmt.Sprint(run(4*time.Minute, refuse))
	if gaps != "[0s 10s 20s 40s 1m0s 1m0s]" || f.tries[1][0].Sub(t0) != 5*time.Second {
		t.Errorf("probes %s after %v", gaps, f.tries[1][0].Sub(t0))
	}
	f.screen(false)
	answer := func(s Start, at int) { f.Finish(f.now, f.ref(at), &s, &End{Cause: fleet.Complete, Status: 200}) }
	run(time.Minute, answer)
	if got := f.state(0); got == Ejected {
		t.Fatal(f.Report(nil))
	}
	f.accounts[0].state = Warming
	f.accounts[0].again, f.accounts[0].since = true, f.now
	f.pass(time.Second)
	f.fail(0, 1)
	if w := f.accounts[0].next.Sub(f.now); f.state(0) != Ejected || w != slowestWait {
		t.Errorf("one failure after the recovery: %s, next probe in %v", f.state(0), w)
	}
	f.pass(slowestWait)
	run(time.Second, answer)
	f.pass(rampTime)
	f.screen(false)
	f.pass(forgiveness)
	f.screen(false)
	f.fail(0, 3)
	if w := f.accounts[0].next.Sub(f.now); f.state(0) != Ejected || w != probeEvery {
		t.Errorf("after two good minutes: %s, next probe in %v", f.state(0), w)
	}
}

// TestLeftAlone: an ejected endpoint is so no more when the others leave or drain, and its first good
// answer clears it; where many remain, those that are too many by then are suspects.
func TestLeftAlone(t *testing.T) {
	for _, drain := range []bool{false, true} {
		f := newField(2)
		var told []Change
		f.Changed = func(c Change) { told = append(told, c) }
		f.screen(true)
		f.fail(0, 3)
		if f.state(0) != Ejected {
			t.Fatal(f.Report(nil))
		}
		f.pass(time.Second)
		if drain {
			f.snap.States[1].Drain = true
		} else {
			f.snap.States = f.snap.States[:1]
		}
		at, s := f.send(0, true)
		if r := f.Report(nil)[0]; s.Probe || r.State != Suspect || r.Cause != Failures || f.out[0] != "" && !drain {
			t.Fatalf("probe %v, %+v, %q", s.Probe, r, f.out[0])
		}
		if c := told[len(told)-1]; c.Kind != Spared || c.Wait != time.Second {
			t.Errorf("told %+v", c)
		}
		f.pass(time.Second)
		at, s = f.send(at, true)
		f.Finish(f.now, f.ref(at), &s, &End{Cause: fleet.Complete, Tokens: 3})
		if f.state(0) != Warming {
			t.Errorf("drain %v: %+v", drain, f.Report(nil)[0])
		}
	}
	f := newField(10)
	f.screen(true)
	for i := range 3 {
		f.fail(i, 3)
	}
	f.snap.States = f.snap.States[:5]
	f.pass(time.Second)
	f.screen(true)
	count := map[State]int{}
	for _, s := range f.Report(nil) {
		count[s.State]++
	}
	if count[Ejected] != 1 || count[Suspect] != 2 || count[Working] != 2 {
		t.Errorf("%v", count)
	}
}

// TestOnlyCandidate: an ejected endpoint that other filters make the only candidate gets no probes, and
// its answers bring it back.
func TestOnlyCandidate(t *testing.T) {
	for _, stream := range []bool{false, true} {
		f := newField(3)
		f.screen(stream)
		f.fail(0, 3)
		early := Start{At: f.now, Stream: stream}
		f.pass(time.Second)
		f.First(f.now, f.ref(0), &early) // begun before
		f.Finish(f.now, f.ref(0), &early, &End{Cause: fleet.Complete, Tokens: 3})
		if f.state(0) != Ejected {
			t.Fatal("an answer begun before the ejection says nothing")
		}
		f.keep, f.out = []bool{true, false, false}, make([]string, 3)
		if probe := f.Screen(f.now, &f.snap, stream, f.rng, f.keep, f.out); probe >= 0 || !f.keep[0] {
			t.Fatalf("probe %d, keep %v", probe, f.keep)
		}
		s := Start{At: f.now, Stream: stream}
		f.Begin(f.ref(0), &s)
		f.pass(time.Second)
		if stream {
			f.First(f.now, f.ref(0), &s)
		} else {
			f.Finish(f.now, f.ref(0), &s, &End{Cause: fleet.Complete, Tokens: 3})
		}
		if r := f.Report(nil)[0]; r.State != Warming || r.Recoveries != 1 {
			t.Errorf("stream %v: %+v", stream, r)
		}
	}
}

// TestClientsAreNotBlamedOnEndpoints: 4xx, hasty clients, and answers that were not streamed.
func TestClientsAreNotBlamedOnEndpoints(t *testing.T) {
	f := newField(4)
	for i := range 400 {
		to, s := f.send(0, i%2 == 0)
		e := &End{Cause: fleet.ClientGone}
		if i%4 == 0 {
			e = &End{Cause: fleet.UpstreamError, Status: []int{400, 401, 404, 413, 422, 429}[i%6]}
		}
		f.pass(200 * time.Millisecond)
		f.Finish(f.now, f.ref(to), &s, e)
	}
	for range 20 {
		f.send(0, false)
		f.pass(time.Second)
	}
	if r := f.Report(nil); r[0].State != Working {
		t.Errorf("%+v", r[0])
	}
}

// TestFailureRate: a share of failures far above that of the others ejects; one that all have does not.
func TestFailureRate(t *testing.T) {
	run := func(share ...float64) []Status {
		f := newField(len(share))
		f.screen(true)
		for n := range 400 {
			i := n % len(share)
			if f.state(i) == Ejected { // and gets nothing, then
				continue
			}
			s := Start{At: f.now}
			f.Begin(f.ref(i), &s)
			e := &End{Cause: fleet.Complete, Status: http.StatusOK}
			if every := int(1/max(share[i], 1e-9) + .5); n/len(share)%every == 0 {
				e = &End{Cause: fleet.Truncated}
			}
			f.pass(10 * time.Millisecond)
			f.Finish(f.now, f.ref(i), &s, e)
		}
		return f.Report(nil)
	}
	if r := run(0.25, 0, 0, 0); r[0].Cause != Rate || r[0].State == Working {
		t.Errorf("%+v", r[0])
	}
	for _, r := range run(0.25, 0.25, 0.25, 0.25) {
		if r.State != Working {
			t.Errorf("%+v", r)
		}
	}
}

// TestUnreachablePage: three scrapes without an answer, unless requests go on being answered.
func TestUnreachablePage(t *testing.T) {
	dark := func(f *field, n uint32) {
		f.snap.States[0].Load = &fleet.Load{At: t0, Errors: n, Unreachable: n > 0}
	}
	f := newField(3)
	f.pass(time.Minute)
	dark(f, 2)
	if f.screen(true); f.state(0) != Working {
		t.Fatal("after two")
	}
	dark(f, 3)
	if f.screen(true); f.state(0) != Ejected {
		t.Fatal("after three")
	}
	for range 550 { // a page that stays dark is tried once a minute
		f.pass(100 * time.Millisecond)
		f.send(1, true)
	}
	if n := len(f.tries[1]); n != 0 {
		t.Fatalf("%d probes within 55 s", n)
	}
	dark(f, 0)
	f.pass(time.Second)
	to, s := f.send(1, true)
	if !s.Probe || to != 0 {
		t.Fatal("no probe of a page that is back")
	}
	f.First(f.now, f.ref(0), &s)
	if f.state(0) != Warming {
		t.Fatal("not back")
	}
	f.pass(time.Minute)
	dark(f, 1)
	f.screen(true)
	_, s = f.send(0, true)
	f.Finish(f.now, f.ref(0), &s, &End{Cause: fleet.Complete, Status: 200})
	dark(f, 9)
	f.pass(10 * time.Second)
	if f.screen(true); f.state(0) == Ejected {
		t.Error("out although it serves")
	}
}

// TestPassedOverByTheGateway: a retry on the next endpoint accuses the first.
func TestPassedOverByTheGateway(t *testing.T) {
	f := newField(3)
	for range 3 {
		to, s := f.send(0, true)
		f.Moved(f.now, f.ref(to), f.ref(1), &s)
		f.First(f.now, f.ref(1), &s)
	}
	if r := f.Report(nil); r[0].State != Ejected || r[1].State != Working {
		t.Errorf("%+v", r)
	}
}

func TestScreenDoesNotAllocate(t *testing.T) {
	f := newField(100)
	f.screen(true)
	s := Start{At: f.now, Stream: true}
	if n := testing.AllocsPerRun(100, func() {
		f.screen(true)
		f.Begin(f.ref(3), &s)
		f.First(f.now, f.ref(3), &s)
		f.Finish(f.now, f.ref(3), &s, &End{Cause: fleet.Complete, Tokens: 3})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestUnderRace: ends come from many goroutines while decisions are made.
func TestUnderRace(t *testing.T) {
	f := newField(6)
	f.Changed = func(Change) {}
	var wg sync.WaitGroup
	ends := make(chan Start, 100)
	for range 4 {
		wg.Go(func() {
			for s := range ends {
				e := &End{Cause: fleet.UpstreamError, Status: 500}
				if s.Uncached%2 == 0 {
					f.First(s.At, fleet.Ref{Slot: 1, Instance: 2}, &s)
					e = &End{Cause: fleet.Complete, Tokens: 1}
				}
				f.Finish(s.At, fleet.Ref{Slot: int(s.Uncached % 6), Instance: uint64(s.Uncached%6) + 1}, &s, e)
				_ = f.Report(nil)
			}
		})
	}
	for n := range 2000 {
		probe := f.screen(true)
		s := Start{At: f.now, Stream: true, Uncached: int64(n % 6), Probe: probe >= 0}
		f.Begin(f.ref(max(probe, 0)), &s)
		ends <- s
		f.pass(10 * time.Millisecond)
	}
	close(ends)
	wg.Wait()
	out := uint64(0)
	for _, s := range f.Report(nil) {
		out += s.Ejections[Failures]
	}
	if out == 0 {
		t.Errorf("%+v", f.Report(nil))
	}
}

func BenchmarkScreen100(b *testing.B) {
	f := newField(100)
	f.screen(true)
	for b.Loop() {
		f.screen(true)
	}
}
