package oracle

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/presage-router/presage/lab/cluster"
)

// TestReplaysAreExact: the assignment that a policy made, replayed, gives what the policy got.
func TestReplaysAreExact(t *testing.T) {
	a := arena(t, crowded)
	for _, policy := range []string{"predictive", "round-robin"} {
		p := &picker{}
		r, err := a.PlayIn(policy, 1, 4, func(cfg *cluster.Config) error {
			cfg.Recorder = p
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		again, err := trial(a, 1, 4, p.picks)
		if err != nil {
			t.Fatal(err)
		}
		if again.attained() != r.Attainment || again.counts != r.Requests || !slices.Equal(again.picks, p.picks) {
			t.Errorf("%s: attains %v, replayed %v", policy, r.Attainment, again.attained())
		}
	}
}

// TestHindsightFindsTheBest: on a handful of requests, where all assignments can be tried.
func TestHindsightFindsTheBest(t *testing.T) {
	a := arena(t, `
name: handful
about: seven requests at once on two engines
origin: this test
expects: nothing
duration: 1s
warmup: 0s
loads: [1]
fleet:
  - {count: 1, gpu: H100, model: llama-3.1-8b, tp: 1}
  - {count: 1, gpu: L40S, model: llama-3.1-8b, tp: 1}
slo: {ttft: 400ms, itl: 100ms}
traffic:
  - class: a
    arrivals: [{burst: {count: 7, every: 10s, within: 100ms}}]
    prompt: {lognormal: {mean: 4000, sigma: 0.6, max: 9000}}
    output: 20
`)
	first, err := trial(a, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := len(first.picks)
	if n < 5 || n > 9 {
		t.Fatalf("%d requests", n)
	}
	best := first
	for code := range 1 << n {
		picks := make([]int32, n)
		for i := range picks {
			picks[i] = int32(code >> i & 1)
		}
		r, err := trial(a, 1, 1, picks)
		if err != nil {
			t.Fatal(err)
		}
		if r.better(best) {
			best = r
		}
	}
	h := Hindsight{Arena: a, Start: []string{"round-robin"}, Replay: 500}
	f, err := h.Search(context.Background(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if f.Attainment != best.attained() || f.E2E != best.e2e || f.Began > f.Attainment || f.Tried != 500 {
		t.Errorf("found %+v, the best attains %v with %v s", f, best.attained(), best.e2e)
	}
}

func TestHindsight(t *testing.T) {
	long := arena(t, crowded)
	short, err := Short(long, 1, 2, 80, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := trial(short, 1, 2, nil); err != nil || r.counts != 60 || len(r.sent) != 80 {
		t.Errorf("%d requests, of which %d count; %v", len(r.sent), r.counts, err)
	}
	h := Hindsight{Arena: short, Start: []string{"round-robin", "predictive"}, Replay: 60}
	f, err := h.Search(context.Background(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Search(context.Background(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Picks, again.Picks) || f.Attainment != again.Attainment || f.From != again.From {
		t.Errorf("searched twice: %+v, %+v", f, again)
	}
	if r, err := trial(short, 1, 2, f.Picks); err != nil || r.attained() != f.Attainment || r.e2e != f.E2E {
		t.Errorf("found %+v, replayed %+v, %v", f, r, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if f, err := h.Search(ctx, 1, 2); err == nil || f == nil || f.Tried != 0 || f.Attainment != f.Began {
		t.Errorf("interrupted: %+v, %v", f, err)
	}
	for want, do := range map[string]func() error{
		"hindsight: no policy": func() error {
			_, err := (&Hindsight{Arena: short}).Search(context.Background(), 1, 1)
			return err
		},
		"short trace: 1 requests": func() error {
			_, err := Short(long, 1, 1, 1, 0)
			return err
		},
		"short trace: crowded sends": func() error {
			_, err := Short(long, 1, 1, 10_000, 0)
			return err
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
