package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func endpoint(name string, host byte, port uint16) *Endpoint {
	return &Endpoint{Name: name, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, host}), port), Model: "demo", GPU: "H100", TP: 1}
}

var t0 = time.Unix(1000, 0)

// account is the brute-force ledger: it recounts every open request from scratch.
type account struct {
	inst      uint64
	work      Work
	streaming bool
	generated int64
	at        time.Time
}

func recount(open map[int]*account, inst uint64) Inflight {
	var in Inflight
	for _, a := range open {
		if a.inst != inst {
			continue
		}
		in.Requests++
		if a.streaming {
			in.Streaming++
			in.Context += a.work.Prompt*int64(a.work.Choices) + a.generated
			continue
		}
		in.Pending++
		in.PendingTokens += a.work.Prompt
		u := a.work.Prompt - a.work.Cached
		in.Uncached += u
		in.Attention += u * (2*a.work.Cached + u)
		if in.OldestPending.IsZero() || a.at.Before(in.OldestPending) {
			in.OldestPending = a.at
		}
	}
	return in
}

// heads is the set of uncached tokens that the oldest pending requests have; {0} where none is pending.
func heads(open map[int]*account, inst uint64) map[int64]bool {
	set, oldest := map[int64]bool{0: true}, recount(open, inst).OldestPending
	for _, a := range open {
		if a.inst == inst && !a.streaming && a.at.Equal(oldest) {
			delete(set, 0)
		}
	}
	for _, a := range open {
		if a.inst == inst && !a.streaming && a.at.Equal(oldest) {
			set[a.work.Prompt-a.work.Cached] = true
		}
	}
	return set
}

// TestLedgerMatchesOpenRequests drives the ledger with every order of events, duplicates, stale
// handles, moves and churn, and recounts it from scratch after each step.
func TestLedgerMatchesOpenRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fleet
		now := t0
		var tickets []Ticket // all ever issued, ended ones included
		open := map[int]*account{}
		set := map[byte]bool{1: true, 2: true}
		sync := func() {
			var eps []*Endpoint
			for h := byte(1); h <= 5; h++ {
				if set[h] {
					eps = append(eps, endpoint(fmt.Sprintf("e%d", h), h, 8000))
				}
			}
			if _, err := f.Sync(now, eps); err != nil {
				t.Fatal(err)
			}
		}
		sync()
		var snap Snapshot
		pick := func() (int, bool) {
			if len(tickets) == 0 {
				return 0, false
			}
			return rapid.IntRange(0, len(tickets)-1).Draw(t, "ticket"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				f.Snapshot(now, &snap)
				if len(snap.States) == 0 {
					return
				}
				s := snap.States[rapid.IntRange(0, len(snap.States)-1).Draw(t, "state")]
				if rapid.Bool().Draw(t, "churn first") {
					set[byte(rapid.IntRange(1, 5).Draw(t, "host"))] = rapid.Bool().Draw(t, "there")
					sync()
				}
				w := Work{
					Prompt:  rapid.Int64Range(-5, 5000).Draw(t, "prompt"),
					Cached:  rapid.Int64Range(-5, 6000).Draw(t, "cached"),
					Choices: rapid.Int32Range(0, 3).Draw(t, "n"),
				}
				tk, ok := f.Begin(now, Ref{Slot: s.Slot, Instance: s.Instance}, w)
				if here := f.current().lookup(s.Slot, s.Instance) != nil; ok != here {
					t.Fatalf("Begin = %v, instance present = %v", ok, here)
				}
				if ok {
					open[len(tickets)] = &account{inst: s.Instance, work: w.clean(), at: now}
					tickets = append(tickets, tk)
				}
			},
			"first": func(t *rapid.T) {
				if i, ok := pick(); ok {
					a := open[i]
					want := a != nil && !a.streaming
					if got := tickets[i].FirstToken(now); got != want {
						t.Fatalf("FirstToken = %v, want %v", got, want)
					}
					if want {
						a.streaming = true
					}
				}
			},
			"tokens": func(t *rapid.T) {
				if i, ok := pick(); ok {
					n := rapid.IntRange(-2, 50).Draw(t, "n")
					a := open[i]
					want := a != nil && n > 0
					if got := tickets[i].Tokens(now, n); got != want {
						t.Fatalf("Tokens = %v, want %v", got, want)
					}
					if want {
						a.streaming = true
						a.generated += int64(n)
					}
				}
			},
			"move": func(t *rapid.T) {
				if i, ok := pick(); ok {
					host := byte(rapid.IntRange(1, 6).Draw(t, "host"))
					cached := rapid.Int64Range(-5, 6000).Draw(t, "cached")
					addr := endpoint("", host, 8000).Addr
					in := f.current().byAddr[addr]
					a := open[i]
					want := a != nil && in != nil
					if got := tickets[i].Move(addr, cached); got != want {
						t.Fatalf("Move = %v, want %v", got, want)
					}
					if want && a.inst != in.id {
						a.inst, a.work.Cached = in.id, cached
						a.work = a.work.clean()
					}
				}
			},
			"done": func(t *rapid.T) {
				if i, ok := pick(); ok {
					want := open[i] != nil
					if got := tickets[i].Done(now); got != want {
						t.Fatalf("Done = %v, want %v", got, want)
					}
					delete(open, i)
				}
			},
			"churn": func(t *rapid.T) {
				set[byte(rapid.IntRange(1, 5).Draw(t, "host"))] = rapid.Bool().Draw(t, "there")
				sync()
			},
			"expire": func(t *rapid.T) {
				before := now.Add(-time.Duration(rapid.IntRange(0, 200).Draw(t, "age")) * time.Millisecond)
				want := 0
				for i, a := range open {
					if a.at.Before(before) {
						want++
						delete(open, i)
					}
				}
				if got := f.Expire(now, before); got != want {
					t.Fatalf("Expire = %d, want %d", got, want)
				}
			},
			"": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond)
				f.Snapshot(now, &snap)
				for _, s := range append(snap.States, f.Leaving(nil)...) {
					got := s.Inflight
					got.Begun, got.BegunUncached = 0, 0
					got.LastBegin, got.LastFirst, got.LastToken, got.LastEnd = time.Time{}, time.Time{}, time.Time{}, time.Time{}
					if want := heads(open, s.Instance); !want[got.HeadUncached] {
						t.Fatalf("instance %d: head of %d uncached tokens, want one of %v", s.Instance, got.HeadUncached, want)
					}
					got.HeadUncached = 0
					if diff := cmp.Diff(recount(open, s.Instance), got); diff != "" {
						t.Fatalf("instance %d (-recount +ledger):\n%s", s.Instance, diff)
					}
				}
			},
		})
	})
}

// TestLedgerUnderRace has many streams deliver their events twice, out of order and from two
// goroutines, while the fleet churns and snapshots watch: nothing may go negative, and all is zero
// at the end.
func TestLedgerUnderRace(t *testing.T) {
	var f Fleet
	sets := [][]*Endpoint{
		{endpoint("a", 1, 8000), endpoint("b", 2, 8000)},
		{endpoint("a", 1, 8000), endpoint("c", 3, 8000)},
		{endpoint("b", 2, 8000), endpoint("c", 3, 8000)},
	}
	if _, err := f.Sync(t0, sets[0]); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var watchers, streams sync.WaitGroup
	watchers.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := f.Sync(t0, sets[i%len(sets)]); err != nil {
				t.Error(err)
			}
		}
	})
	watchers.Go(func() {
		var snap Snapshot
		for !stop.Load() {
			f.Snapshot(t0, &snap)
			for _, s := range snap.States {
				if s.Requests != s.Pending+s.Streaming || s.Pending < 0 || s.Streaming < 0 || s.Uncached < 0 || s.Context < 0 || s.Attention < 0 {
					t.Errorf("inconsistent account: %+v", s.Inflight)
					return
				}
			}
		}
	})
	for g := range 8 {
		streams.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var snap Snapshot
			for range 300 {
				f.Snapshot(t0, &snap)
				s := snap.States[rng.IntN(len(snap.States))]
				tk, ok := f.Begin(t0, Ref{Slot: s.Slot, Instance: s.Instance}, Work{Prompt: 100, Cached: 10})
				if !ok {
					continue
				}
				events := []func(){
					func() { tk.FirstToken(t0) }, func() { tk.Tokens(t0, 3) },
					func() { tk.Move(sets[rng.IntN(3)][0].Addr, 5) }, func() { tk.Done(t0) },
				}
				rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
				var twice sync.WaitGroup
				twice.Go(func() {
					tk.FirstToken(t0)
					tk.Tokens(t0, 1)
					tk.Done(t0)
				})
				for _, e := range events {
					e()
				}
				twice.Wait()
				if tk.Open() {
					t.Error("still open after Done")
				}
			}
		})
	}
	streams.Wait()
	stop.Store(true)
	watchers.Wait()
	var snap Snapshot
	f.Snapshot(t0, &snap)
	for _, s := range append(snap.States, f.Leaving(nil)...) {
		if s.Requests != 0 || s.Uncached != 0 || s.Context != 0 || s.Attention != 0 || !s.OldestPending.IsZero() {
			t.Errorf("left over on %s: %+v", s.Name, s.Inflight)
		}
	}
}

// TestRecreatedEndpointStartsAtZero is field bug B32: late events of a deleted pod must not touch
// the pod recreated under its name and address.
func TestRecreatedEndpointStartsAtZero(t *testing.T) {
	var f Fleet
	a := endpoint("a", 1, 8000)
	count := func() int32 {
		var s Snapshot
		f.Snapshot(t0, &s)
		return s.States[0].Requests
	}
	begin := func() Ticket {
		var s Snapshot
		f.Snapshot(t0, &s)
		tk, ok := f.Begin(t0, Ref{Slot: s.States[0].Slot, Instance: s.States[0].Instance}, Work{Prompt: 7})
		if !ok {
			t.Fatal("no ticket")
		}
		return tk
	}
	for _, set := range [][]*Endpoint{{a}} {
		if _, err := f.Sync(t0, set); err != nil {
			t.Fatal(err)
		}
	}
	r1 := begin()
	_, _ = f.Sync(t0, nil)
	_, _ = f.Sync(t0, []*Endpoint{a})
	if got := count(); got != 0 {
		t.Fatalf("recreated pod starts at %d", got)
	}
	r2 := begin()
	steps := []struct {
		name string
		do   func()
		want int32
	}{
		{"R1 ends", func() { r1.Done(t0) }, 1},
		{"R1 ends again", func() { r1.Done(t0) }, 1},
		{"R2 streams", func() { r2.FirstToken(t0); r2.Tokens(t0, 1) }, 1},
		{"R2 ends", func() { r2.Done(t0) }, 0},
		{"R2 ends again", func() { r2.Done(t0) }, 0},
	}
	for _, st := range steps {
		st.do()
		if got := count(); got != st.want {
			t.Fatalf("%s: in flight %d, want %d", st.name, got, st.want)
		}
	}
	if left := f.Leaving(nil); len(left) != 0 {
		t.Fatalf("still leaving: %v", left)
	}
}

func TestBeginAndSnapshotDoNotAllocate(t *testing.T) {
	var f Fleet
	if _, err := f.Sync(t0, []*Endpoint{endpoint("a", 1, 8000), endpoint("b", 2, 8000)}); err != nil {
		t.Fatal(err)
	}
	var s Snapshot
	f.Snapshot(t0, &s)
	n := testing.AllocsPerRun(1000, func() {
		f.Snapshot(t0, &s)
		tk, _ := f.Begin(t0, Ref{Slot: 0, Instance: s.States[0].Instance}, Work{Prompt: 7})
		tk.FirstToken(t0)
		tk.Tokens(t0, 4)
		tk.Done(t0)
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestSyncRefusesBadSets(t *testing.T) {
	var f Fleet
	good := []*Endpoint{endpoint("a", 1, 8000)}
	if _, err := f.Sync(t0, good); err != nil {
		t.Fatal(err)
	}
	for want, set := range map[string][]*Endpoint{
		"name used twice": {endpoint("a", 1, 8000), endpoint("a", 2, 8000)},
		"already a":       {endpoint("a", 1, 8000), endpoint("b", 1, 8000)},
		"no name":         {endpoint("", 1, 8000)},
		"no address":      {endpoint("a", 1, 0)},
	} {
		if _, err := f.Sync(t0, set); err == nil {
			t.Errorf("%s: accepted", want)
		}
	}
	var s Snapshot
	f.Snapshot(t0, &s)
	if len(s.States) != 1 || s.States[0].Name != "a" {
		t.Fatalf("a refused set changed the fleet: %v", s.States)
	}
}
