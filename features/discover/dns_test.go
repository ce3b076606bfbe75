package discover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

// zone is a name server for tests: answers by network, or an error.
type zone struct {
	mu      sync.Mutex
	answers map[string][]string
	err     error
	asked   int
}

func (z *zone) set(v4, v6 string, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers = map[string][]string{"ip4": strings.Fields(v4), "ip6": strings.Fields(v6)}
	z.err = err
}

func (z *zone) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	if host != "engines.example" {
		return nil, fmt.Errorf("asked for %q", host)
	}
	if z.err != nil {
		return nil, z.err
	}
	var addrs []netip.Addr
	for _, a := range z.answers[network] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

var (
	servfail = &net.DNSError{Err: "server misbehaving", Name: "engines.example", Server: "10.0.0.53:53", IsTemporary: true}
	timeout  = &net.DNSError{Err: "read udp 10.0.0.1:4711->10.0.0.53:53: i/o timeout", Name: "engines.example", IsTimeout: true, IsTemporary: true}
)

// TestB41DNS: the fleet follows the answers; failures keep it, and it empties only when the name
// server has said for a while that there is nothing.
func TestB41DNS(t *testing.T) {
	var z zone
	z.set("", "", nil)
	d := &DNS{Name: "engines.example", Port: 8000, Resolver: &z, Endpoint: fleet.Endpoint{Model: "demo", Engine: "vllm"}}
	follow(t, d, func(f *following) {
		const ask = DefaultLookup
		for i, step := range []struct {
			v4, v6 string
			err    error
			pass   time.Duration
			want   string
			log    string // the last report
			n      int    // of reports in all
		}{
			{"", "", nil, ask, "", "dns engines.example: no such name, or no address; is it the right one? (endpoints in force meanwhile: 0)", 1},
			{"10.0.0.1", "", nil, ask, "10.0.0.1:8000", "+1 -0 ~0", 2},
			{"10.0.0.2 10.0.0.1 10.0.0.2", "fd00::1", nil, ask, "10.0.0.1:8000 10.0.0.2:8000", "+1 -0 ~0", 3},
			{"10.0.0.1 10.0.0.2", "", nil, ask, "10.0.0.1:8000 10.0.0.2:8000", "+1 -0 ~0", 3}, // only the order
			{"10.0.0.2", "", nil, ask, "10.0.0.2:8000", "+0 -1 ~0", 4},
			{"", "", servfail, 10 * time.Minute, "10.0.0.2:8000", "dns engines.example: server misbehaving; is the name server well? (endpoints in force meanwhile: 1)", 5},
			{"", "", timeout, 10 * time.Minute, "10.0.0.2:8000", "dns engines.example: no answer in time; is the name server up? (endpoints in force meanwhile: 1)", 6},
			{"10.0.0.2", "", nil, ask, "10.0.0.2:8000", "+0 -0 ~0", 7},
			{"", "", nil, DefaultHold - ask, "10.0.0.2:8000", "dns engines.example: no address any more; after 30s without one, no endpoint is left (endpoints in force meanwhile: 1)", 8},
			{"10.0.0.2", "", nil, ask, "10.0.0.2:8000", "+0 -0 ~0", 9}, // the server had only started up
			{"", "", nil, DefaultHold - ask, "10.0.0.2:8000", "", 10},
			{"", "", servfail, ask, "10.0.0.2:8000", "", 11}, // a failure between empty answers: the hold starts anew
			{"", "", nil, DefaultHold - ask, "10.0.0.2:8000", "", 12},
			{"", "", nil, 2 * ask, "", "+0 -1 ~0", 13},
			{"", "fd00::1 ::ffff:10.0.0.7 ff02::1 ::", nil, ask, "10.0.0.7:8000 [fd00::1]:8000", "+2 -0 ~0", 14},
		} {
			z.set(step.v4, step.v6, step.err)
			got := strings.Fields(f.pass(step.pass))
			slices.Sort(got)
			if strings.Join(got, " ") != step.want {
				t.Fatalf("step %d: fleet %q, want %q\n%s", i, got, step.want, strings.Join(f.log(), "\n"))
			}
			if log := f.log(); len(log) != step.n || step.log != "" && log[len(log)-1] != step.log {
				t.Errorf("step %d: want report %d to be %q, got %q", i, step.n, step.log, log)
			}
		}
		var snap fleet.Snapshot
		f.fleet.Snapshot(time.Now(), &snap)
		if s := snap.States[0]; s.Model != "demo" || s.Engine != "vllm" || s.TP != 1 || s.Origin != "dns engines.example" {
			t.Errorf("%+v", s.Endpoint)
		}
	})
}

func TestDNSRefusesHugeAnswers(t *testing.T) {
	var z zone
	var many []string
	for i := range maxAddresses + 1 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
	}
	z.set(strings.Join(many, " "), "", nil)
	follow(t, &DNS{Name: "engines.example", Port: 1, Resolver: &z}, func(f *following) {
		if got := f.pass(time.Minute); got != "" || len(f.log()) != 1 || !strings.Contains(f.log()[0], "4097 addresses: more than 4096") {
			t.Errorf("%q %q", got, f.log())
		}
	})
}

// TestDNSConverges: whatever was answered before, in the end the set is that of a fresh start.
func TestDNSConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := answers{hold: DefaultHold}
		now := time.Unix(0, 0)
		take := func(addrs []netip.Addr, err error) {
			now = now.Add(DefaultLookup)
			a.take(now, addrs, err)
		}
		some := func() []netip.Addr {
			var addrs []netip.Addr
			for i := range rapid.IntRange(0, 3).Draw(t, "addresses") {
				addrs = append(addrs, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
			}
			return addrs
		}
		for range rapid.IntRange(0, 20).Draw(t, "answers") {
			if rapid.Bool().Draw(t, "fails") {
				take(nil, errors.New("lost"))
			} else {
				take(some(), nil)
			}
		}
		last := some()
		for range int(DefaultHold/DefaultLookup) + 1 {
			take(last, nil)
		}
		if len(last) > 0 && !a.known || !slices.Equal(last, a.addrs) {
			t.Fatalf("last answer %v, in force %v", last, a.addrs)
		}
	})
}

// flapping is a source whose 1,000 endpoints come and go.
type flapping struct {
	rounds int
	each   func(i int) []*fleet.Endpoint
}

func (s flapping) Run(ctx context.Context, out chan<- Update) {
	for i := range s.rounds {
		send(ctx, out, Update{Endpoints: s.each(i)})
		pause(ctx, time.Second)
	}
	<-ctx.Done()
}

// TestB41Flapping: 1,000 endpoints that come and go lose no request of the ledger and leave nothing
// behind.
func TestB41Flapping(t *testing.T) {
	all := make([]*fleet.Endpoint, 1000)
	for i := range all {
		all[i] = &fleet.Endpoint{Name: fmt.Sprintf("p%d", i), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8000)}
	}
	const rounds = 50
	source := flapping{rounds, func(i int) (set []*fleet.Endpoint) {
		for k, e := range all {
			if i == rounds-1 || (k*7+i*13)%5 > 0 {
				set = append(set, e)
			}
		}
		return set
	}}
	follow(t, source, func(f *following) {
		var open []fleet.Ticket
		var snap fleet.Snapshot
		for range rounds {
			f.fleet.Snapshot(time.Now(), &snap)
			if snap.Slots > len(all) {
				t.Fatalf("%d slots for %d endpoints", snap.Slots, len(all))
			}
			for _, s := range snap.States[:100] {
				tk, ok := f.fleet.Begin(time.Now(), fleet.Ref{Slot: s.Slot, Instance: s.Instance}, fleet.Work{Prompt: 10})
				if !ok {
					t.Fatal("no ticket")
				}
				open = append(open, tk)
			}
			f.pass(time.Second)
		}
		count := func() (n int32) {
			f.fleet.Snapshot(time.Now(), &snap)
			for _, s := range append(snap.States, f.fleet.Leaving(nil)...) {
				n += s.Requests
			}
			return n
		}
		if n := count(); int(n) != len(open) {
			t.Errorf("%d requests accounted, %d are open", n, len(open))
		}
		for _, tk := range open {
			tk.Done(time.Now())
		}
		if n := count(); n != 0 || len(f.fleet.Leaving(nil)) != 0 {
			t.Errorf("%d requests left, %d instances leaving", n, len(f.fleet.Leaving(nil)))
		}
		if len(snap.States) != len(all) {
			t.Errorf("%d endpoints in the end", len(snap.States))
		}
		got := map[string]bool{}
		for _, s := range snap.States {
			got[s.Name] = true
		}
		want := map[string]bool{}
		for _, e := range all {
			want[e.Name] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFollowReportsRefusedSets: a set that the fleet refuses changes nothing.
func TestFollowReportsRefusedSets(t *testing.T) {
	e := func(name string, last byte) *fleet.Endpoint {
		return &fleet.Endpoint{Name: name, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, last}), 8000)}
	}
	sets := [][]*fleet.Endpoint{{e("a", 1), e("b", 2)}, {e("a", 1), e("a", 2)}, {e("b", 2)}}
	follow(t, flapping{len(sets), func(i int) []*fleet.Endpoint { return sets[i] }}, func(f *following) {
		f.pass(1500 * time.Millisecond)
		if got := f.pass(0); got != "a b" {
			t.Errorf("after a refused set: %q", got)
		}
		if got := f.pass(time.Second); got != "b" {
			t.Errorf("after the next one: %q", got)
		}
		want := []string{"+2 -0 ~0", "endpoint a: name used twice (endpoints in force meanwhile: 2)", "+0 -1 ~0"}
		if diff := cmp.Diff(want, f.log()); diff != "" {
			t.Error(diff)
		}
	})
}
