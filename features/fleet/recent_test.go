package fleet

import (
	"math"
	"testing"
	"time"
)

// TestRecentCountsTokens: one stream begins at 0, its first token comes at 100 ms and then one
// every 20 ms; another, uncached 300 of 400 tokens, gets its first token at 200 ms.
func TestRecentCountsTokens(t *testing.T) {
	var f Fleet
	if _, err := f.Sync(t0, []*Endpoint{endpoint("a", 1, 8000)}); err != nil {
		t.Fatal(err)
	}
	var s Snapshot
	look := func(at time.Duration) *State {
		f.Snapshot(t0.Add(at), &s)
		return &s.States[0]
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	ref := Ref{Instance: look(0).Instance}
	a, _ := f.Begin(t0, ref, Work{Prompt: 100})
	b, _ := f.Begin(t0, ref, Work{Prompt: 400, Cached: 100})
	for i := range 6 {
		a.Tokens(t0.Add(ms(100+20*i)), 1)
	}
	b.Tokens(t0.Add(ms(200)), 1)
	r := look(ms(200)).Recent
	if r.Generated != 7 || r.StreamTime != ms(100) {
		t.Errorf("generated %d in %v, want 7 in 100ms", r.Generated, r.StreamTime)
	}
	if got := r.StepTime(); got != ms(100)/7 {
		t.Errorf("step time %v", got)
	}
	if want := ms(100) + ms(100)/gainTTFT; r.TTFT != want {
		t.Errorf("recent TTFT %v, want %v", r.TTFT, want)
	}
	fade := math.Exp(-0.1)
	if f, p := r.Rates(t0.Add(ms(200))); f != r.FirstRate(t0.Add(ms(200))) || p != r.PrefillRate(t0.Add(ms(200))) {
		t.Errorf("rates %v, %v", f, p)
	}
	if want, got := 1+fade, r.FirstRate(t0.Add(ms(200))); math.Abs(got-want) > 1e-9 {
		t.Errorf("first-token rate %v, want %v", got, want)
	}
	if want, got := 300+100*fade, r.PrefillRate(t0.Add(ms(200))); math.Abs(got-want) > 1e-6 {
		t.Errorf("prefill rate %v, want %v", got, want)
	}
	a.Done(t0.Add(ms(210)))
	b.Done(t0.Add(ms(210)))
	r = look(ms(1200)).Recent
	if r.Generated != 0 || r.StreamTime != 0 || r.StepTime() != 0 {
		t.Errorf("ended streams still count: %+v", r)
	}
	if r.ITL != ms(20) { // b had one token, so no gap
		t.Errorf("recent ITL %v, want 20ms", r.ITL)
	}
	if want, got := (1+fade)*math.Exp(-1), r.FirstRate(t0.Add(ms(1200))); math.Abs(got-want) > 1e-9 {
		t.Errorf("first-token rate a second later %v, want %v", got, want)
	}
}
