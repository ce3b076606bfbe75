package router

import (
	"slices"
	"testing"
)

// explained builds an explanation by hand: a row of terms per endpoint.
func explained(unit string, terms []string, rows ...[]float32) (*Decision, []bool) {
	d := &Decision{}
	d.Reset()
	values := d.Why.Size(unit, terms, len(rows))
	keep := make([]bool, len(rows))
	for i, row := range rows {
		keep[i] = row != nil
		for t, v := range row {
			values[i*len(terms)+t] = v
			d.Why.Totals[i] += v
		}
		if row == nil {
			d.Why.Filtered[i] = "stale"
		}
	}
	return d, keep
}

func names(i int) string { return []string{"h100-1", "h100-2", "h100-3"}[i] }

func TestSentences(t *testing.T) {
	scoreTerms := []string{"prefix", "queue", "kv"}
	msTerms := []string{"queue", "own prompt", "speed"}
	foretoldTerms := []string{"own prompt", "queue", "kv wait", "adapter", "decode", "stall", "slo"} // of the predictive policy
	cases := []struct {
		name   string
		unit   string
		terms  []string
		rows   [][]float32
		picked int
		set    func(d *Decision, v *Verdict)
		reason Reason
		want   string
	}{
		{"cache", unitScore, scoreTerms, [][]float32{{2.76, 1, 0.5}, {0.3, 2, 0.5}, {0, 2, 0.5}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 2.46 better than h100-2; its queue costs 1.00 of that"},
		{"cache without a price", unitScore, scoreTerms, [][]float32{{2.76, 2, 0.5}, {0.3, 2, 0.5}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 2.46 better than h100-2"},
		{"queue", unitScore, scoreTerms, [][]float32{{1, 0, 0.5}, {0, 2, 0.5}}, 1, nil, ByQueue,
			"less work ahead: 2.00 better than h100-1; its colder cache costs 1.00 of that"},
		{"a price above the gain", unitScore, scoreTerms, [][]float32{{2.5, 0, 0.5}, {0, 2, 1.5}}, 1, nil, ByQueue,
			"less work ahead: 2.00 better than h100-1; its colder cache costs 2.50"},
		{"a fuller cache", unitScore, scoreTerms, [][]float32{{1, 0, 0.5}, {0, 0, 1}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 1.00 better than h100-2; its fuller KV cache costs 0.50 of that"},
		{"a larger batch", unitScore, []string{"lora", "requests", "tokens"}, [][]float32{{1, 0.2, 0.3}, {0.6, 0.5, 0.3}}, 0, nil, ByAdapter,
			"its adapter is at hand: 0.40 better than h100-2; its larger batch costs 0.30 of that"},
		{"queued tokens", unitScore, []string{"lora", "requests", "tokens"}, [][]float32{{1, 0.2, 0.1}, {0.6, 0.2, 0.3}}, 0, nil, ByAdapter,
			"its adapter is at hand: 0.40 better than h100-2; its prefill backlog costs 0.20 of that"},
		{"memory", unitScore, scoreTerms, [][]float32{{0, 2, 0.2}, {0, 2, 0.5}}, 1, nil, ByMemory,
			"more KV cache free: 0.30 better than h100-1"},
		{"adapter", unitScore, []string{"lora"}, [][]float32{{1}, {0.8}}, 0, nil, ByAdapter,
			"its adapter is at hand: 0.20 better than h100-2"},
		{"session", unitScore, []string{"session"}, [][]float32{{0}, {1}}, 1, nil, BySession,
			"the session's endpoint: 1.00 better than h100-1"},
		{"cache in ms", "ms", msTerms, [][]float32{{338, 55, 0}, {96, 404, 0}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 349 ms better than h100-2; its queue costs 242 ms of that"},
		{"foretold prompt", "ms", foretoldTerms, [][]float32{{52, 210, 0, 0, 90, 8, 0}, {601, 10, 0, 0, 90, 8, 0}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 549 ms better than h100-2; its queue costs 200 ms of that"},
		{"foretold prompt of other hardware", "ms", foretoldTerms, [][]float32{{601, 0, 0, 0, 90, 8, 0}, {252, 40, 0, 0, 90, 8, 0}}, 1, nil, BySpeed,
			"faster hardware: 349 ms better than h100-1; its queue costs 40 ms of that"},
		{"foretold queue", "ms", foretoldTerms, [][]float32{{2, 800, 0, 0, 90, 8, 0}, {252, 40, 0, 0, 90, 8, 0}}, 1, nil, ByQueue,
			"less work ahead: 760 ms better than h100-1; computing the prompt costs 250 ms of that"},
		{"foretold stream", "ms", foretoldTerms, [][]float32{{52, 11, 0, 0, 90, 8, 0}, {52, 0, 0, 0, 230, 8, 0}}, 0, nil, ByQueue,
			"fastest stream foretold: 140 ms better than h100-2; its queue costs 11 ms of that"},
		{"foretold stall of more streams", "ms", foretoldTerms, [][]float32{{52, 0, 0, 0, 90, 8, 3}, {52, 0, 0, 0, 90, 130, 0}}, 0, nil, ByQueue,
			"fewest streams stalled by its prefill: 122 ms better than h100-2; its risk of missing the SLO costs 3 ms of that"},
		{"foretold stall by a longer prefill", "ms", foretoldTerms, [][]float32{{20, 0, 0, 0, 90, 160, 0}, {200, 0, 0, 0, 70, 1600, 0}}, 0, nil, ByCache,
			"92 % of 8,214 prompt tokens cached: 1,440 ms better than h100-2; its slower stream costs 20 ms of that"},
		{"foretold stall by fewer streams more than by the prefill", "ms", foretoldTerms, [][]float32{{100, 0, 0, 0, 90, 20, 0}, {200, 0, 0, 0, 70, 1600, 0}}, 0, nil, ByQueue,
			"fewest streams stalled by its prefill: 1,580 ms better than h100-2; its slower stream costs 20 ms of that"},
		{"foretold shortage of blocks", "ms", foretoldTerms, [][]float32{{52, 0, 0, 0, 90, 48, 0}, {52, 0, 3000, 0, 90, 8, 0}}, 0, nil, ByMemory,
			"no shortage of KV blocks: 3,000 ms better than h100-2; stalling its streams costs 40 ms of that"},
		{"foretold shortage of slots", "ms", foretoldTerms, [][]float32{{52, 0, 0, 0, 90, 48, 0}, {52, 0, 0, 3000, 90, 8, 0}}, 0, nil, ByAdapter,
			"a slot for its adapter: 3,000 ms better than h100-2; stalling its streams costs 40 ms of that"},
		{"foretold SLO", "ms", foretoldTerms, [][]float32{{52, 0, 400, 0, 90, 8, 0}, {52, 0, 0, 0, 90, 8, 700}}, 0, nil, ByHeadroom,
			"likelier to meet its SLO: 700 ms better than h100-2; its shortage of KV blocks costs 400 ms of that"},
		{"a slot that is missing", "ms", foretoldTerms, [][]float32{{52, 0, 0, 60, 90, 8, 0}, {52, 0, 0, 0, 190, 8, 0}}, 0, nil, ByQueue,
			"fastest stream foretold: 100 ms better than h100-2; waiting for a slot of its adapter costs 60 ms of that"},
		{"cache among near ties", "ms", foretoldTerms, [][]float32{{52, 200, 0, 0, 90, 8, 0}, {240, 0, 0, 0, 90, 8, 0}}, 0,
			func(d *Decision, _ *Verdict) { d.Why.Reason = ByCache }, ByCache,
			"92 % of 8,214 prompt tokens cached; h100-2 is foretold 12 ms better, too little to tell"},
		{"speed", "ms", msTerms, [][]float32{{0, 0, 30}, {0, 0, 1230}}, 0, nil, BySpeed, "faster hardware: 1,200 ms better than h100-2"},
		{"fewer requests", "requests", []string{"requests"}, [][]float32{{3}, {1}, {9}}, 1, nil, ByQueue,
			"less work ahead: 2 requests better than h100-1"},
		{"a term nobody knows", unitScore, []string{"custom"}, [][]float32{{1}, {0}}, 0, nil, NoReason,
			"best in total: 1.00 better than h100-2"},
		{"tie", unitScore, scoreTerms, [][]float32{{0, 2, 1}, {0, 2, 1}}, 1, nil, ByTie, "equal to h100-1; drawn among equals"},
		{"the only one", unitScore, scoreTerms, [][]float32{nil, {0, 2, 1}}, 1, nil, OnlyOne, "the only candidate"},
		{"draw", unitScore, scoreTerms, [][]float32{{0, 2, 1}, {0, 1, 0}}, 1,
			func(d *Decision, _ *Verdict) { d.Why.Reason = ByDraw }, ByDraw, "drawn with probability 12 %; h100-1 ranked first"},
		{"draw of the first", unitScore, scoreTerms, [][]float32{{0, 2, 1}, {0, 1, 0}}, 0,
			func(d *Decision, _ *Verdict) { d.Why.Reason = ByDraw }, ByDraw, "drawn with probability 12 %"},
		{"exploration", unitScore, scoreTerms, [][]float32{{0, 2, 1}, {0, 1, 0}}, 1,
			func(d *Decision, _ *Verdict) { d.Why.Reason = ByExplore }, ByExplore, "exploratory pick; h100-1 ranked first"},
		{"rotation", unitScore, nil, [][]float32{{}, {}, nil}, 1,
			func(d *Decision, _ *Verdict) { d.Why.Reason = ByRotation }, ByRotation, "its turn among 2 ready endpoints"},
		{"fallback", "requests", []string{"requests"}, [][]float32{{3}, {1}}, 1,
			func(d *Decision, v *Verdict) { d.Why.Reason, v.Failed, v.Failure = ByFallback, "predictive", "panic" }, ByFallback,
			"predictive could not decide (panic): fewest requests in flight"},
	}
	templates := map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, keep := explained(c.unit, c.terms, c.rows...)
			d.Index = c.picked
			d.Judge(&Query{Hits: []int32{9, 0, 0}}, keep)
			var given Verdict
			if c.set != nil {
				c.set(d, &given)
			}
			v := d.Why.Verdict(d.Index, names)
			v.Prompt, v.Cached, v.Propensity, v.Failed, v.Failure = 8214, 7557, 0.12, given.Failed, given.Failure
			if v.Reason != c.reason {
				t.Errorf("reason %s, want %s", v.Reason, c.reason)
			}
			if got := v.Sentence(); got != c.want {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
			templates[v.Reason.String()] = true
		})
	}
	if len(templates) < 13 {
		t.Errorf("only %d kinds of sentence are tested", len(templates))
	}
}

func TestVerdictOfNothing(t *testing.T) {
	var e Explanation // a policy that does not explain itself
	if v := e.Verdict(0, names); v.Runner != "" || v.Sentence() != "best in total" {
		t.Errorf("%+v: %s", v, v.Sentence())
	}
}

func TestReasonNamesAreDistinct(t *testing.T) {
	var seen []string
	for r := NoReason; r <= ByAdapter; r++ {
		if slices.Contains(seen, r.String()) || r.String() == "unknown" {
			t.Errorf("reason %d is called %s", r, r)
		}
		seen = append(seen, r.String())
	}
}

func TestPercentAndAmount(t *testing.T) {
	for p, want := range map[float64]string{0: "0 %", 1: "100 %", 0.991: "99 %", 0.9996: "100 %", 0.5: "50 %", 0.0425: "4.2 %", 0.001: "0.1 %"} {
		if got := Percent(p); got != want {
			t.Errorf("Percent(%v) = %s, want %s", p, got, want)
		}
	}
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{{1234567, "tokens", "1,234,567 tokens"}, {-1234, "blocks", "-1,234 blocks"}, {-0.2, "ms", "0 ms"}, {0.1234, "s", "0.123 s"}, {12, "", "12"}, {1, "requests", "1 request"}, {1, "ms", "1 ms"}, {2, "score", "2.00"}} {
		if got := Amount(c.x, c.unit); got != c.want {
			t.Errorf("Amount(%v, %s) = %s, want %s", c.x, c.unit, got, c.want)
		}
	}
}
