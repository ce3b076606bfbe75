package outlier

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	for range f.snap.States {
		f.keep, f.out = append(f.keep, true), append(f.out, "")
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

// TestInvariants: whatever happens, no more than the larger of one and 30 % of a model's endpoints
// are out, somebody is left, probes of one endpoint are 5 s apart, and nobody is out for what
// clients did.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newField(rapid.IntRange(1, 12).Draw(t, "endpoints"))
		for i := range f.snap.States {
			if rapid.IntRange(0, 3).Draw(t, "other model") == 0 {
				e := *f.snap.States[i].Endpoint
				e.Model = "n"
				f.snap.States[i].Endpoint = &e
			}
		}
		f.screen(true)
		type trip struct {
			Start
			at  fleet.Ref
			one bool // a token has come
		}
		var open []trip
		blamed := map[uint64]bool{} // instances that did something wrong
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				probe := f.screen(rapid.Bool().Draw(t, "stream"))
				left := map[string]int{}
				for i, k := range f.keep {
					if k {
						left["kept"]++
					}
					if f.out[i] == LeftOut {
						left[f.snap.States[i].Model]++
					}
					left["all "+f.snap.States[i].Model]++
				}
				for _, m := range []string{"m", "n"} {
					if n := left["all "+m]; left[m] > max(1, n*3/10) || n == 1 && left[m] > 0 {
						t.Fatalf("%d of %d endpoints of %s are out", left[m], n, m)
					}
				}
				if left["kept"] == 0 {
					t.Fatal("nobody is left")
				}
				to := probe
				for i := rapid.IntRange(0, 11).Draw(t, "to"); to < 0; i++ {
					if i %= len(f.keep); f.keep[i] {
						to = i
					}
				}
				if f.keep[to] == (probe >= 0) {
					t.Fatalf("probe %d, kept %v", probe, f.keep)
				}
				if probe >= 0 {
					id := f.snap.States[to].Instance
					if n := len(f.tries[id]); n > 0 && f.now.Sub(f.tries[id][n-1]) < probeEvery {
						t.Fatalf("probes at %v and %v", f.tries[id][n-1], f.now)
					}
					f.tries[id] = append(f.tries[id], f.now)
				}
				s := trip{Start: Start{At: f.now, Stream: rapid.Bool().Draw(t, "stream"), Probe: probe >= 0, Uncached: 10}, at: f.ref(to)}
				f.Begin(s.at, &s.Start)
				open = append(open, s)
			},
			"first": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				s := &open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
				if !s.one {
					s.one = true
					f.First(f.now, s.at, &s.Start)
				}
			},
			"end": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				s := open[i]
				open = append(open[:i], open[i+1:]...)
				e := End{Cause: fleet.Cause(rapid.IntRange(0, int(fleet.Internal)).Draw(t, "cause"))}
				if s.one {
					e.Tokens = 3
				}
				if e.Cause == fleet.UpstreamError {
					e.Status = rapid.SampledFrom([]int{0, 200, 400, 404, 429, 500, 503}).Draw(t, "status")
				}
				if e.verdict() == bad {
					blamed[s.at.Instance] = true
				}
				f.Finish(f.now, s.at, &s.Start, &e)
			},
			"moved": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				s := &open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
				to := f.ref(rapid.IntRange(0, len(f.snap.States)-1).Draw(t, "to"))
				if s.one || to == s.at {
					return
				}
				blamed[s.at.Instance] = true
				f.Moved(f.now, s.at, to, &s.Start)
				s.at, s.Probe = to, false
			},
			"": func(t *rapid.T) {
				f.pass(time.Duration(rapid.IntRange(0, 900).Draw(t, "ms")) * time.Millisecond)
				for _, s := range f.Report(nil) {
					if s.State == Ejected && s.Cause != Silent && !blamed[s.Instance] {
						t.Fatalf("%+v", s)
					}
				}
			},
		})
	})
}

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
