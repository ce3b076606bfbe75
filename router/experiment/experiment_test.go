package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

var t0 = time.Unix(1_700_000_000, 0)

// fixed always picks one endpoint.
type fixed struct {
	name string
	at   int
}

func (f fixed) Name() string { return f.name }

func (f fixed) Route(_ *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = f.at, 0.75
	return nil
}

// pool is a fleet of n endpoints.
func pool(t testing.TB, n int) *fleet.Fleet {
	t.Helper()
	f := &fleet.Fleet{}
	var list []*fleet.Endpoint
	for i := range n {
		list = append(list, &fleet.Endpoint{
			Name: fmt.Sprintf("e%d", i), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000), Model: "demo", TP: 1,
		})
	}
	if _, err := f.Sync(t0, list); err != nil {
		t.Fatal(err)
	}
	return f
}

func baselinePolicy(t testing.TB, name string, seed uint64) router.Policy {
	t.Helper()
	p, err := baseline.Policies().New(name, router.Params{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ab is an experiment of arms a, b, … with these shares; arm i picks endpoint i.
func ab(t testing.TB, o Options, shares ...float64) *Experiment {
	t.Helper()
	for i, s := range shares {
		name := string(rune('a' + i))
		o.Arms = append(o.Arms, Arm{Name: name, Share: s, Policy: fixed{"rule-" + name, i}})
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ask has a policy decide one request.
func ask(t testing.TB, p router.Policy, now time.Time, session string) *router.Decision {
	t.Helper()
	q := &router.Query{
		Now: now, Req: &request.Request{Session: session, PromptTokens: 10, Choices: 1}, Snap: &fleet.Snapshot{States: make([]fleet.State, 4)},
		Keep: []bool{true, true, true, true}, Hits: make([]int32, 4), Out: make([]string, 4), Rand: rand.New(rand.NewPCG(1, 1)),
	}
	d := &router.Decision{}
	d.Reset()
	if err := p.Route(q, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestArmsAreBalanced: units come to arms by their shares, and the decision says which, by whom, with
// the propensity of the arm's own policy.
func TestArmsAreBalanced(t *testing.T) {
	for _, unit := range []Unit{ByRequest, BySession} {
		e := ab(t, Options{Unit: unit, Seed: 7}, 0.5, 0.3, 0.2)
		n := map[string]float64{}
		const all = 20000
		for i := range all {
			d := ask(t, e, t0, fmt.Sprint("session ", i))
			n[d.Arm]++
			if d.Policy != "rule-"+d.Arm || d.Propensity != 0.75 || d.Index != int(d.Arm[0]-'a') {
				t.Fatalf("%+v", d)
			}
		}
		for arm, share := range map[string]float64{"a": 0.5, "b": 0.3, "c": 0.2} {
			if sd := math.Sqrt(share * (1 - share) / all); math.Abs(n[arm]/all-share) > 4*sd {
				t.Errorf("by %s: arm %s has %.4f of the requests", unit, arm, n[arm]/all)
			}
		}
		s := e.Status()
		if s.Control != "a" || len(s.Arms) != 3 || float64(s.Arms[1].Decisions) != n["b"] || s.Arms[1].Policy != "rule-b" {
			t.Errorf("%+v", s)
		}
	}
}

// TestAssignmentIsDeterministic: equal seeds assign alike, other seeds otherwise; a session never
// changes its arm.
func TestAssignmentIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Unit: Unit(rapid.IntRange(0, 2).Draw(t, "unit")), Seed: rapid.Uint64().Draw(t, "seed"), HoldBack: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "hold back")}
		newOne := func(seed uint64) *Experiment {
			o := o
			o.Seed = seed
			o.Arms = []Arm{{"a", 0.5, fixed{"a", 0}}, {"b", 0.5, fixed{"b", 1}}}
			e, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		e, same, other := newOne(o.Seed), newOne(o.Seed), newOne(o.Seed+1)
		homes := map[string]int{}
		differ := 0
		for i := range 200 {
			now := t0.Add(time.Duration(i) * time.Minute)
			q := &router.Query{Now: now, Req: &request.Request{Session: fmt.Sprint("s", i%20)}}
			arm, as := e.assign(q)
			if a, s := same.assign(q); a != arm || s != as {
				t.Fatalf("request %d: %d and %d", i, arm, a)
			}
			if a, _ := other.assign(q); a != arm {
				differ++
			}
			if o.Unit != BySession || as == len(e.opts.Arms) {
				continue
			}
			if home, ok := homes[q.Req.Session]; ok && home != arm {
				t.Fatalf("session %s was on arm %d and is on %d", q.Req.Session, home, arm)
			}
			homes[q.Req.Session] = arm
		}
		if differ == 0 {
			t.Fatal("the seed makes no difference")
		}
	})
}

// TestBlocks: rounds hold every arm by its share in changing order, all requests of a block meet one
// policy, and what is decided in the washout belongs to no arm.
func TestBlocks(t *testing.T) {
	const length, washout = time.Minute, 10 * time.Second
	e := ab(t, Options{Unit: ByBlock, Length: length, Washout: washout, Seed: 3}, 0.5, 0.25, 0.25)
	start := t0.Truncate(4 * length)
	orders := map[string]int{}
	for round := range 250 {
		var order []byte
		for block := range 4 {
			at := start.Add(time.Duration(4*round+block) * length)
			first := ask(t, e, at, "s")
			for _, in := range []time.Duration{0, washout - 1, washout, length - 1} {
				d := ask(t, e, at.Add(in), fmt.Sprint(in))
				want := d.Policy[len("rule-"):]
				if in < washout {
					want = ""
				}
				if d.Arm != want || d.Policy != first.Policy {
					t.Fatalf("%v into block %d: arm %q, %s after %s", in, block, d.Arm, d.Policy, first.Policy)
				}
			}
			order = append(order, first.Policy[len(first.Policy)-1])
		}
		if n := strings.Count(string(order), "a"); n != 2 || strings.Count(string(order), "b") != 1 {
			t.Fatalf("round %d: %s", round, order)
		}
		orders[string(order)]++
	}
	if len(orders) != 12 { // 4! / 2!
		t.Errorf("orders: %v", orders)
	}
	for order, n := range orders {
		if n < 5 || n > 45 { // 21 expected
			t.Errorf("%s came %d times", order, n)
		}
	}
}

// TestHeldBackBlocks: of every ten blocks one is the control's, under its own name, at another place
// in each ten; the other arms' order goes on around it.
func TestHeldBackBlocks(t *testing.T) {
	const length = time.Minute
	for _, unit := range []Unit{BySession, ByBlock} {
		e := ab(t, Options{Unit: unit, Length: length, HoldBack: 0.1, Seed: 3, Control: "b"}, 0.5, 0.5)
		start := t0.Truncate(20 * length)
		places := map[int]int{}
		arms := map[string]int{}
		for i := range 2000 {
			d := ask(t, e, start.Add(time.Duration(i)*length), fmt.Sprint("s", i))
			arms[d.Arm]++
			if d.Arm == HeldBack {
				places[i%10]++
				if d.Policy != "rule-b" {
					t.Fatalf("%+v", d)
				}
			}
		}
		if arms[HeldBack] != 200 || len(places) != 10 {
			t.Errorf("by %s: %v at %v", unit, arms, places)
		}
		if d := arms["a"] - arms["b"]; unit == ByBlock && d != 0 || d > 200 || d < -200 {
			t.Errorf("by %s: %v", unit, arms)
		}
	}
}

// TestControlOnlyInHeldBackBlocks is the ordinary holdback: one policy serves, the old one is measured.
func TestControlOnlyInHeldBackBlocks(t *testing.T) {
	e := ab(t, Options{Unit: ByRequest, Length: time.Minute, HoldBack: 0.1, Control: "a"}, 0, 1)
	arms := map[string]int{}
	for i := range 1000 {
		d := ask(t, e, t0.Add(time.Duration(i)*time.Minute), "")
		arms[d.Arm+" "+d.Policy]++
	}
	if diff := cmp.Diff(map[string]int{HeldBack + " rule-a": 100, "b rule-b": 900}, arms); diff != "" {
		t.Error(diff)
	}
}

// TestArmOfAFailingPolicy: the plain rule decides in place of an arm that panics, for that arm.
func TestArmOfAFailingPolicy(t *testing.T) {
	e, err := New(Options{Arms: []Arm{{"a", 0.5, fixed{"a", 0}}, {"b", 0.5, panicking{}}}})
	if err != nil {
		t.Fatal(err)
	}
	r := router.New(router.Options{Fleet: pool(t, 2), Policy: e})
	arms := map[string]int{}
	for range 200 {
		var f router.Flight
		if err := r.Route(&router.Ask{Now: t0, Req: &request.Request{Model: "demo", Choices: 1}}, &f); err != nil {
			t.Fatal(err)
		}
		arms[f.Decision.Arm+" "+f.Decision.Policy+" "+f.Decision.Failed]++
	}
	if len(arms) != 2 || arms["a a "] < 60 || arms["b fallback panicking"] < 60 {
		t.Errorf("%v", arms)
	}
}

type panicking struct{}

func (panicking) Name() string                                { return "panicking" }
func (panicking) Route(*router.Query, *router.Decision) error { panic("out of ideas") }

func TestNewRefuses(t *testing.T) {
	arms := func(shares ...float64) []Arm {
		var out []Arm
		for i, s := range shares {
			out = append(out, Arm{string(rune('a' + i)), s, fixed{"x", 0}})
		}
		return out
	}
	for want, o := range map[string]Options{
		"arms: 1: an experiment":      {Arms: arms(1)},
		"arms: shares add up to 0.9":  {Arms: arms(0.5, 0.4)},
		"arms.b: a share of -1":       {Arms: arms(2, -1)[1:]},
		"arms.a: a share of NaN":      {Arms: arms(math.NaN(), 1)},
		"arms.b: a share of 0 is for": {Arms: arms(1, 0)},
		"arms.a: given twice":         {Arms: append(arms(0.5), arms(0.5)...)},
		`control: "c" is no arm`:      {Arms: arms(0.5, 0.5), Control: "c"},
		"unit: 9 unknown":             {Arms: arms(0.5, 0.5), Unit: 9},
		"length: 1ms":                 {Arms: arms(0.5, 0.5), Length: time.Millisecond},
		"washout: 1h0m0s":             {Arms: arms(0.5, 0.5), Washout: time.Hour},
		"hold_back: 0.6":              {Arms: arms(0.5, 0.5), HoldBack: 0.6},
		"hold_back: shares [0.9":      {Arms: arms(0.5, 0.5), HoldBack: 0.0137},
		"write multiples of 0.01":     {Arms: arms(0.12345, 1-0.12345), Unit: ByBlock},
		"guardrails.ttft_p90: 0.5":    {Arms: arms(0.5, 0.5), Guardrails: []Guardrail{{TTFT, 0.5}}},
		"guardrails.errors: 5":        {Arms: arms(0.5, 0.5), Guardrails: []Guardrail{{Errors, 5}}},
		"arms: arm 0: no usable name": {Arms: []Arm{{HeldBack, 0.5, fixed{}}, {"b", 0.5, fixed{}}}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestRouteDoesNotAllocate(t *testing.T) {
	e := ab(t, Options{Unit: ByBlock, Length: time.Minute, HoldBack: 0.1}, 0.5, 0.5)
	q := &router.Query{Now: t0, Req: &request.Request{Session: "s"}}
	d := &router.Decision{}
	if n := testing.AllocsPerRun(100, func() {
		q.Now = q.Now.Add(20 * time.Second)
		_ = e.Route(q, d)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
