package adaptive

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

// TestThresholdsAndDwell follows one detector through a hump.
func TestThresholdsAndDwell(t *testing.T) {
	w := watched{Watch: Watch{Gain: 1, Up: time.Second, Down: 4 * time.Second, Enter: 0.5, Exit: 0.2, Dwell: 3 * time.Second}}
	now := t0
	step := func(raw float64) {
		now = now.Add(200 * time.Millisecond)
		w.step(now, raw, 200*time.Millisecond)
	}
	n := 0
	for ; !w.active; n++ {
		step(1)
	}
	if n != 4 { // 1-exp(-0.8) = 0.55 is the first above 0.5
		t.Errorf("active after %d steps", n)
	}
	for range 20 {
		step(1)
	}
	top, entered := w.value, w.since
	for n = 0; w.active; n++ {
		step(0)
		if w.active != (w.value > w.Exit) && now.Sub(entered) >= w.Dwell {
			t.Fatalf("value %v, active %v", w.value, w.active)
		}
	}
	if want := int(math.Ceil(4 * math.Log(top/0.2) / 0.2)); n != want {
		t.Errorf("inactive after %d steps, want %d", n, want)
	}
	if w.push() != 0 {
		t.Error("an inactive detector pushes")
	}

	w = watched{Watch: Watch{Gain: 1, Enter: 0.5, Exit: 0.2, Dwell: 3 * time.Second}}
	step(1)
	step(0)
	if !w.active || w.value != 0 {
		t.Errorf("left before the dwell was over: %+v", w)
	}
	for range 14 {
		step(0)
	}
	if w.active {
		t.Error("did not leave after the dwell")
	}
}

// TestSmoothingIsOfTime: values depend on time that passed, not on how often one looked.
func TestSmoothingIsOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Watch{Gain: 1, Up: time.Second, Down: 9 * time.Second, Enter: 0.9, Exit: 0.1}
		a, b := watched{Watch: w, value: 0.4}, watched{Watch: w, value: 0.4}
		raw := rapid.Float64Range(0, 1).Draw(t, "raw")
		n := rapid.IntRange(1, 50).Draw(t, "looks")
		for range n {
			a.step(t0, raw, 2*time.Second/time.Duration(n))
		}
		b.step(t0, raw, 2*time.Second)
		if math.Abs(a.value-b.value) > 1e-6 {
			t.Fatalf("%v in %d looks, %v in one", a.value, n, b.value)
		}
	})
}

func detect(d Detector, s []fleet.State, set ...func(*Sample)) float64 {
	x := Sample{Now: t0, Elapsed: 200 * time.Millisecond, Snap: snapshot(s), PeakPrefill: PeakPrefill}
	for _, f := range set {
		f(&x)
	}
	return d.Detect(&x)
}

func TestImbalance(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d := Imbalance{Work: 1}
	s := states(4)
	near("idle", detect(d, s), 0)
	for i := range s {
		s[i].Running, s[i].Waiting, s[i].KVUsage, s[i].Requests, s[i].Uncached, s[i].Pending = 30, 5, 0.5, 30, 9000, 3
	}
	near("equal", detect(d, s), 0)
	s = states(4)
	s[2].Requests = 100
	// CV^2 is 3; the chance of a mean of 25 takes 4/25 off; over N-1 = 3.
	near("all requests on one", detect(d, s), math.Sqrt((3-0.16)/3))
	s[2].Requests = 5
	near("five requests are chance", detect(d, s), 0)
	s = states(4)
	s[0].KVUsage = 0.04
	near("a little KV on one", detect(d, s), 0.04)
	s[0].KVUsage = 0.9
	near("much KV on one", detect(d, s), 0.9)
	s = states(4)
	s[1].Uncached, s[1].Pending = PeakPrefill, 32
	near("a second of work on one", detect(d, s), math.Sqrt((3-1.)/3)/2)
	s[1].Drain = true
	near("draining endpoints do not count", detect(d, s), 0)

	s = states(4)
	for i := range s {
		s[i].Requests = 100
		if i >= 2 {
			s[i].Endpoint, s[i].Requests = &fleet.Endpoint{Name: s[i].Name, Model: "other"}, 1
		}
	}
	near("models are looked at one by one", detect(d, s), 0)

	near("one endpoint", detect(d, states(1)), math.NaN())
	near("none", detect(d, nil), math.NaN())
	s = states(4)
	s[0].Running = 100
	for i := range s {
		s[i].At = t0.Add(-time.Minute)
	}
	near("old pages", detect(d, s), 0)
}

func TestBurst(t *testing.T) {
	b := &Burst{Window: 500 * time.Millisecond, Memory: 5 * time.Second}
	s := states(8)
	load := func(n int32, arrivals int) float64 {
		for i := range s {
			s[i].Requests = n
		}
		return detect(b, s, func(x *Sample) { x.Arrivals = arrivals })
	}
	for i := range 100 { // 20 s of 100 arrivals a second
		if v := load(12, 20); i >= 5 && v > 0.1 || v > 0 && b.age > 20*time.Second {
			t.Fatalf("steady arrivals give %v after %d looks", v, i)
		}
	}
	steady := *b
	if v := load(12, 200); v != 0 {
		t.Errorf("arrivals that do not stay in flight give %v", v)
	}
	*b = steady
	if v := load(60, 20); v != 0 {
		t.Errorf("growth without arrivals gives %v", v)
	}
	*b = steady
	if v := load(60, 400); v < 0.5 || v > 1 {
		t.Errorf("both give %v", v)
	}
	if !math.IsNaN(detect(b, nil)) {
		t.Error("a burst without endpoints")
	}
}

// A pool that nobody has used yet takes its first wave for one, from its first tens of milliseconds on.
func TestBurstSeesTheFirstWave(t *testing.T) {
	b := &Burst{Window: 500 * time.Millisecond, Memory: 5 * time.Second}
	s := states(8)
	worst := 1.0
	for n := int32(12); n <= 120; n += 12 { // 1,200 arrivals a second
		for i := range s {
			s[i].Requests = n / 8
		}
		v := detect(b, s, func(x *Sample) { x.Arrivals, x.Elapsed = 12, 10*time.Millisecond })
		if n >= 60 {
			worst = min(worst, v)
		}
	}
	if worst < 0.25 {
		t.Errorf("%v at the least, after 50 ms", worst)
	}
}

func TestPressure(t *testing.T) {
	s := states(4)
	if v := detect(Pressure{}, s); v != 0 {
		t.Errorf("idle: %v", v)
	}
	s[0].KVUsage, s[1].Waiting, s[2].Waiting, s[2].KVUsage = 0.4, 1, 50, 0.1
	if v, want := detect(Pressure{}, s), (0.5+0.2+1+0)/4; math.Abs(v-want) > 1e-6 {
		t.Errorf("%v, want %v", v, want)
	}
	s[3].Known = 0
	if v, want := detect(Pressure{}, s), (0.5+0.2+1)/3; math.Abs(v-want) > 1e-6 {
		t.Errorf("one unknown: %v, want %v", v, want)
	}
	for i := range s {
		s[i].Load = &fleet.Load{}
	}
	if v := detect(Pressure{}, s); !math.IsNaN(v) {
		t.Errorf("nothing known: %v", v)
	}
}

func TestCache(t *testing.T) {
	c := &Cache{Memory: time.Second}
	if v := detect(c, nil); !math.IsNaN(v) {
		t.Errorf("no requests: %v", v)
	}
	v := detect(c, nil, func(x *Sample) { x.Prompt, x.Cached = 1000, 250 })
	if v != 0.25 {
		t.Errorf("%v", v)
	}
	v = detect(c, nil, func(x *Sample) { x.Prompt, x.Cached, x.Elapsed = 1000, 1000, time.Second })
	if old := math.Exp(-1); math.Abs(v-(0.25*old+1)/(old+1)) > 1e-9 {
		t.Errorf("a second later: %v", v)
	}
}

// anyStates draws a pool in any condition, nonsense from pages included.
func anyStates(t *rapid.T) []fleet.State {
	s := states(rapid.IntRange(0, 5).Draw(t, "endpoints"))
	for i := range s {
		st := &s[i]
		st.Load = &fleet.Load{
			At: t0.Add(rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Second}).Draw(t, "age")), Known: fleet.Known(rapid.Uint16().Draw(t, "known")),
			Waiting: rapid.Int32().Draw(t, "waiting"), Running: rapid.Int32().Draw(t, "running"),
			KVUsage: rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{float32(math.NaN()), float32(math.Inf(1)), -1, 0, 1, 87})).Draw(t, "kv"),
		}
		st.Requests = rapid.Int32().Draw(t, "requests")
		st.Pending = rapid.Int32().Draw(t, "pending")
		st.Uncached, st.Context, st.PendingTokens = rapid.Int64().Draw(t, "uncached"), rapid.Int64().Draw(t, "context"), rapid.Int64().Draw(t, "tokens")
		st.Drain = rapid.Bool().Draw(t, "drain") && st.Endpoint != nil
	}
	return s
}

// TestB18DetectorsStayFinite: whatever engines report, detectors give 0 to 1 or say that they do not
// know, and the policy routes on with weights in their bounds.
func TestB18DetectorsStayFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(Defaults(routerParams))
		if err != nil {
			t.Fatal(err)
		}
		now := t0
		for range rapid.IntRange(1, 20).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 2000).Draw(t, "ms")) * time.Millisecond)
			p.Tick(now, snapshot(anyStates(t)))
			st := p.Status()
			for _, d := range st.Detectors {
				if !(d.Raw >= 0 && d.Raw <= 1 && d.Value >= 0 && d.Value <= 1) {
					t.Fatalf("%+v", d)
				}
			}
			sum := 0.0
			for _, w := range st.Weights {
				if !(w.Value > 0) {
					t.Fatalf("%+v", st.Weights)
				}
				sum += w.Value
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("weights sum up to %v", sum)
			}
		}
	})
}
