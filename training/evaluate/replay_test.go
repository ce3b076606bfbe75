package evaluate

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// rowAt is a request of 1000 prompt and 11 answer tokens: first token and mean gap in seconds.
func rowAt(arrival, ttft, itl float64) datasets.Row {
	nan := math.NaN()
	return datasets.Row{
		Arrival: arrival, Prompt: 1000, Output: 11, TTFT: ttft, ITL: itl, E2E: ttft + 10*itl,
		Cached: datasets.Unknown, MaxTokens: datasets.Unknown, Images: datasets.Unknown, Group: datasets.Unknown,
		State: datasets.State{
			Running: datasets.Unknown, Waiting: datasets.Unknown, KV: nan, ScrapeAge: nan, HitShare: nan,
			Inflight: datasets.Unknown, PrefillTokens: datasets.Unknown, ContextTokens: datasets.Unknown,
		},
	}
}

// recordAt is one of llm-d's records.
func recordAt(running int, ttft, itl float64) datasets.Row {
	r := rowAt(math.NaN(), ttft, itl)
	r.E2E = math.NaN()
	r.State.Running, r.State.Waiting, r.State.PrefillTokens = running, 0, 0
	return r
}

// TestLedger follows three requests by hand: what was in flight when each came.
func TestLedger(t *testing.T) {
	c, err := withClock([]datasets.Row{
		rowAt(0, 2, .1),    // first token at 2, ends at 3
		rowAt(1, 3, .5),    // first token at 4, ends at 9
		rowAt(2.5, 1, .01), // first token at 3.5, ends at 3.6
		rowAt(3.55, 1, .1),
		rowAt(20, 1, .1),
	}, newPrefixes())
	if err != nil {
		t.Fatal(err)
	}
	type load struct{ Pending, PendingUncached, Streams, Known0, Known1 int }
	var got []load
	for i := range c.examples {
		ex := &c.examples[i]
		got = append(got, load{
			int(ex.obs.X.At(features.Pending)), int(ex.obs.X.At(features.PendingUncached)), int(ex.obs.X.At(features.Streams)),
			ex.known[0], ex.known[1],
		})
	}
	want := []load{
		{0, 0, 0, 0, 0},
		{1, 1000, 0, 0, 0},
		{1, 1000, 1, 1, 0},
		{1, 1000, 1, 2, 1}, // the third has its first token, the first has ended
		{0, 0, 0, 4, 4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ledger (-want +got):\n%s", d)
	}
	if d := cmp.Diff([2][]int{{0, 2, 1, 3, 4}, {0, 2, 3, 1, 4}}, c.order); d != "" {
		t.Errorf("order of labels (-want +got):\n%s", d)
	}
}

// TestRunsStayApart: a later run begins with an empty ledger and knows every label of an earlier one.
func TestRunsStayApart(t *testing.T) {
	p := Part{Format: datasets.Measured, runs: [][]datasets.Row{
		{rowAt(0, 100, 1), rowAt(1, 100, 1)},
		{rowAt(0, 1, .1), rowAt(.5, 1, .1)},
	}}
	c, err := p.course()
	if err != nil {
		t.Fatal(err)
	}
	third, fourth := &c.examples[2], &c.examples[3]
	if third.run != 1 || third.inflight != 0 || third.known != [2]int{2, 2} {
		t.Errorf("first of the second run: run %d, %v in flight, %v known", third.run, third.inflight, third.known)
	}
	if fourth.inflight != 1 || fourth.known != [2]int{2, 2} {
		t.Errorf("second of the second run: %v in flight, %v known", fourth.inflight, fourth.known)
	}
	if d := cmp.Diff([2][]int{{0, 1, 2, 3}, {0, 1, 2, 3}}, c.order); d != "" {
		t.Errorf("order of labels (-want +got):\n%s", d)
	}
	if third.obs.Where != c.examples[0].obs.Where {
		t.Error("the endpoint is another one in the second run")
	}
}

// TestLabelsWithoutClock: a record sees the labels of its target from more than twice the running
// requests before it, and never fewer than an earlier one did.
func TestLabelsWithoutClock(t *testing.T) {
	nan := math.NaN()
	c := withoutClock([]datasets.Row{
		recordAt(0, .1, nan), recordAt(0, nan, .01), recordAt(0, .1, nan), recordAt(1, .1, nan),
		recordAt(0, .1, nan), recordAt(2, .1, nan), recordAt(1, nan, .01), recordAt(0, nan, .01),
	})
	var got [][2]int
	for i := range c.examples {
		got = append(got, c.examples[i].known)
	}
	want := [][2]int{{0, 0}, {0, 0}, {1, 0}, {1, 0}, {3, 0}, {3, 0}, {3, 0}, {3, 2}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("labels known (-want +got):\n%s", d)
	}
}

// TestFutureIsNotUsed: whatever the times that become known after a decision, its forecast is the same;
// and the times known before do matter.
func TestFutureIsNotUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(30, 60).Draw(t, "n")
		cut := rapid.IntRange(5, n-1).Draw(t, "cut")
		clock := rapid.Bool().Draw(t, "clock")
		rows := make([]datasets.Row, n)
		now := 0.0
		for i := range rows {
			now += rapid.Float64Range(0, 2).Draw(t, "gap")
			ttft, itl := rapid.Float64Range(.01, 3).Draw(t, "ttft"), rapid.Float64Range(.001, .3).Draw(t, "itl")
			if rows[i] = rowAt(now, ttft, itl); !clock {
				rows[i] = recordAt(rapid.IntRange(0, 4).Draw(t, "running"), ttft, itl)
			}
		}
		before := forecastsOf(t, rows, clock)
		poisoned := slices.Clone(rows)
		for i := range poisoned {
			p := &poisoned[i]
			if !clock {
				if i >= cut {
					p.TTFT, p.ITL = 500, 50
				}
				continue
			}
			at := rows[cut].Arrival
			if p.Arrival+p.E2E <= at {
				continue // all of it is known
			}
			if p.Arrival+p.TTFT > at {
				p.TTFT = 500
			}
			p.ITL = 50
			p.E2E = p.TTFT + 10*p.ITL
		}
		after := forecastsOf(t, poisoned, clock)
		for i := range cut + 1 {
			if before[i] != after[i] {
				t.Fatalf("forecast %d of %d (cut at %d) used the future:\n%v\n%v", i, n, cut, before[i], after[i])
			}
		}
		if clock || cut > n/2 {
			return
		}
		if before[n-1] == after[n-1] {
			t.Fatalf("forecast %d ignores %d known labels", n-1, n-cut)
		}
	})
}

func forecastsOf(t *rapid.T, rows []datasets.Row, clock bool) (said []features.Forecast) {
	c := withoutClock(rows)
	if clock {
		var err error
		if c, err = withClock(slices.Clone(rows), newPrefixes()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.run(t.Context(), predictor.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range c.examples {
		said = append(said, c.examples[i].obs.Fore)
	}
	return said
}

// TestPrefixes: a hit is what was sent there before, never what the engine reported.
func TestPrefixes(t *testing.T) {
	p := newPrefixes()
	row := func(endpoint string, group, shared int, session string, prompt int) *datasets.Row {
		return &datasets.Row{Endpoint: endpoint, Group: group, GroupTokens: shared, Session: session, Prompt: prompt, Cached: 777, Replicas: 2}
	}
	for i, c := range []struct {
		row  *datasets.Row
		want int
	}{
		{row("a", 1, 100, "", 500), 0},
		{row("a", 1, 100, "", 500), 96}, // whole blocks
		{row("b", 1, 100, "", 500), 0},  // another endpoint
		{row("a", 2, 100, "", 500), 0},  // another group
		{row("a", 3, 0, "", 500), 0},
		{row("a", 3, 0, "", 500), 0}, // shares nothing
		{row("a", 1, 100, "", 50), 48},
		{row("a", 1, 100, "", 96), 80}, // the last token is always computed
		{row("a", 0, 0, "s", 200), 0},
		{row("a", 0, 0, "s", 400), 192}, // the conversation so far
		{row("a", 0, 0, "s", 300), 288},
		{row("a", 0, 0, "t", 300), 0},
		{row("", 0, 0, "s", 200), 0},
		{row("", 0, 0, "s", 200), 0}, // a pool of two
	} {
		if got := p.match(c.row); got != c.want {
			t.Errorf("%d: %d tokens cached, want %d", i, got, c.want)
		}
	}
}

// TestJudgeLearns: on requests whose times follow their load exactly, forecasts come close, every figure
// is finite, and the part can be judged again with the same result.
func TestJudgeLearns(t *testing.T) {
	p := Part{Format: datasets.VLLMCPU, File: "made", Dropped: map[string]int{}, kept: 900}
	var rows []datasets.Row
	for i := range 900 {
		r := rowAt(float64(i), .05, .01)
		r.Prompt = 500 + 37*(i*i%41)
		r.TTFT = .02 + 1e-4*float64(r.Prompt)
		r.E2E = r.TTFT + 10*r.ITL
		rows = append(rows, r)
	}
	p.runs = [][]datasets.Row{rows}
	first, err := p.Judge(t.Context(), Options{Foils: true})
	if err != nil {
		t.Fatal(err)
	}
	s := first.Targets["ttft"]
	if s.N != 600 || s.Skipped != 300 || s.MAPE > 0.02 || math.Abs(s.Bias) > 0.02 {
		t.Errorf("ttft: %+v", s)
	}
	if s := first.Targets["itl"]; s.MAPE > 0.02 {
		t.Errorf("itl: %+v", s)
	}
	again, err := p.Judge(t.Context(), Options{Foils: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("judged twice (-first +second):\n%s", d)
	}
	for _, name := range []string{"linear", "tree", "boosted"} {
		if r := first.Rivals["ttft"][name]; r.N != 600 || r.MAPE > 0.1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if w := first.Windows["ttft"]; w.N < 5 || w.Seconds != 60 {
		t.Errorf("windows: %+v", w)
	}
	if first.Strata["ttft"][Decile(10)].N != 60 {
		t.Errorf("strata: %v", first.Strata["ttft"])
	}
}
