package predictor

import (
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// TestFarFromThePrior: whatever the engines' speed is to the prior's, a dozen labels of each of two endpoints,
// one of them twice as slow, are enough to foretell within a factor of two and to tell them apart the right way
// round; and the first label, of an engine that still compiles, may be anything.
func TestFarFromThePrior(t *testing.T) {
	for _, speed := range []float64{0.05, 0.3, 1, 4, 12, 100} {
		for _, odd := range []float64{1, 60} {
			s := newStudent(t, 3, 0)
			at := time.Unix(1e9, 0)
			for n := range 24 {
				o := s.w.next()
				slot := n % 2
				factor := speed * float64(1+slot)
				if n == 0 {
					factor *= odd
				}
				at = at.Add(250 * time.Millisecond)
				o.At, o.Where.Slot, o.Where.Instance = at, int32(slot), uint64(slot)+1
				o.TTFT, o.ITL = time.Duration(factor*float64(o.TTFT)), time.Duration(factor*float64(o.ITL))
				s.see(o, nil)
			}
			var off, ratio float64
			const rows = 50
			for range rows {
				o := s.w.next()
				var fore [2]float64
				for slot := range 2 {
					o.Where.Slot, o.Where.Instance = int32(slot), uint64(slot)+1
					f := s.forecast(o)
					fore[slot] = float64(f.Price.First)
					off += math.Log(fore[slot]/(speed*float64(1+slot)*o.TTFT.Seconds())) / rows / 2
				}
				ratio += fore[1] / fore[0] / rows
			}
			if math.Abs(off) > math.Ln2 {
				t.Errorf("%v times as slow as the prior, first label %v times that: foretold %.2f times the truth", speed, odd, math.Exp(off))
			}
			if ratio < 0.99 {
				t.Errorf("%v times as slow as the prior, first label %v times that: the slower endpoint is priced %.2f times the faster", speed, odd, ratio)
			}
		}
	}
}

// TestReachIsForTheBeginning: a law that has seen enough, or whose errors are mostly within a factor of three, is
// not scaled, whatever single labels say.
func TestReachIsForTheBeginning(t *testing.T) {
	s := newStudent(t, 4, reachLabels)
	for range 2 * reachWindow {
		if f := new(reach).scale(s.classes[s.w.class].theta, math.Log(50)); f != 1 {
			t.Fatalf("after %d labels the law is scaled by %v", reachLabels, f)
		}
	}
	for name, residuals := range map[string][]float64{
		"near":      {math.Log(2.9), -math.Log(2.9), math.Log(2.9), math.Log(2.9), math.Log(2.9)},
		"odd ones":  {math.Log(60), math.Log(60), 0, 0, 0, math.Log(90), 0, math.Log(90), 0},
		"no number": {math.NaN(), math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(1), math.NaN()},
	} {
		r, law := new(reach), newClass(s.w.class, GenericLaw()).theta
		for _, v := range residuals {
			if f := r.scale(law, v); f != 1 {
				t.Errorf("%s: the law is scaled by %v", name, f)
			}
		}
	}
	r, law := new(reach), newClass(s.w.class, GenericLaw()).theta
	want := 10 * law.Theta()[1]
	for range reachLeast {
		r.scale(law, math.Log(10))
	}
	if got := law.Theta()[1]; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("ten times too slow in %d labels, a coefficient becomes %v, want %v", reachLeast, got, want)
	}
	if f := r.scale(law, 0); f != 1 {
		t.Errorf("where it belongs, the law is scaled by %v again", f)
	}
}

// TestLookAheadIsTheEndpointsOwn: of two endpoints that look the same now, the one through which long prompts
// pass is foretold the longer gaps; a new one is foretold what the class makes likely.
func TestLookAheadIsTheEndpointsOwn(t *testing.T) {
	s := newStudent(t, 5, 0)
	var snap fleet.Snapshot
	at := time.Unix(1e9, 0)
	snap.States = make([]fleet.State, 2)
	for range 400 {
		at = at.Add(150 * time.Millisecond)
		snap.At = at
		for i := range snap.States {
			st := &snap.States[i]
			st.Class, st.Slot, st.Instance = s.w.class, i, uint64(i)+1
			st.Streaming, st.Context = 20, int64(20*(400+2600*i))
			gap := 12e-3 + 25e-6*20 + 50e-9*float64(st.Context)
			st.Gaps += 20 * 10
			st.Streamed += time.Duration(20 * 10 * gap * 1e9)
		}
		s.Watch(&snap)
	}
	o := s.w.next()
	o.X[features.Streams], o.X[features.Context], o.X[features.Prompt] = 20, 20*1000, 500
	var gaps [3]float64
	for i := range gaps {
		o.Where.Slot, o.Where.Instance = int32(i), uint64(i)+1
		f := s.forecast(o)
		gaps[i] = float64(f.Price.Gap)
	}
	if short, long, fresh := gaps[0], gaps[1], gaps[2]; !(long > 1.03*short) || fresh <= short || fresh >= long {
		t.Errorf("gaps of %.4f s where prompts are short, %.4f where long, %.4f on a new endpoint", short, long, fresh)
	}
}
