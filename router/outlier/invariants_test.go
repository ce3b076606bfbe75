package outlier

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

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
				if !slices.ContainsFunc(f.snap.States, func(s fleet.State) bool { return !s.Drain }) {
					return
				}
				left := map[string]int{}
				for i, k := range f.keep {
					if f.snap.States[i].Drain {
						continue
					}
					if k {
						left["kept"]++
					}
					if f.state(i) == Ejected {
						left[f.snap.States[i].Model]++
					} else if f.out[i] == LeftOut {
						t.Fatalf("%d is left out, being %s", i, f.state(i))
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
			"leave": func(t *rapid.T) {
				if n := len(f.snap.States); n > 1 {
					i := rapid.IntRange(0, n-1).Draw(t, "who")
					f.snap.States = slices.Delete(f.snap.States, i, i+1)
				}
			},
			"join": func(t *rapid.T) { f.join(rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")) },
			"drain": func(t *rapid.T) {
				s := &f.snap.States[rapid.IntRange(0, len(f.snap.States)-1).Draw(t, "who")]
				e := *s.Endpoint
				e.Drain = !e.Drain
				s.Endpoint = &e
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
