package cluster

import (
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router/outlier"
)

// rivals are policies of every kind: by rotation, by count, by weights, by tokens, by stickiness.
func rivals() []string {
	return []string{"round-robin", "least-request", "llmd-weighted", "lmetric", "llmd-sticky-token", "p2c"}
}

// tally sums up what clients saw, and what an endpoint got, from a time on.
type tally struct{ sent, failed, there int }

func tallyOf(recs []Record, node int, from, to time.Duration) (t tally) {
	for i := range recs {
		r := &recs[i]
		if r.Sent < from || r.Sent >= to {
			continue
		}
		t.sent++
		if r.Cause != fleet.Complete {
			t.failed++
		}
		if r.Node == node {
			t.there++
		}
	}
	return t
}

// TestFailingEnginesGetNoRequests: with the detector an engine that refuses, answers 500 at once or
// never answers at all gets probes alone after 5 s, under every policy; and full work after it is well.
func TestFailingEnginesGetNoRequests(t *testing.T) {
	const ill, well, end = 5 * time.Second, 35 * time.Second, 115 * time.Second
	const gap = 80 * time.Millisecond
	for name, fault := range map[string][]Event{
		"refusing": {{At: ill, Nodes: []int{1}, Kind: Kill}, {At: well, Nodes: []int{1}, Kind: Revive}},
		"fast 500": {{At: ill, Nodes: []int{1}, Kind: Fail, Factor: 1}, {At: well, Nodes: []int{1}, Kind: Fail, Factor: 0}},
		"silent":   {{At: ill, Nodes: []int{1}, Kind: Stall, Length: well - ill}},
	} {
		for _, rule := range rivals() {
			t.Run(name+"/"+rule, func(t *testing.T) {
				var seen []outlier.Change
				d := &outlier.Detector{Changed: func(c outlier.Change) { seen = append(seen, c) }}
				cfg := Config{Nodes: h100s(t, 4), Policy: policy(t, rule), Events: fault, Outliers: d, Seed: 3}
				recs, rep := records(t, cfg, steady(int(end/gap), gap))
				out := tallyOf(recs, 1, ill+6*time.Second, well)
				if probes := 6; out.there > probes {
					t.Errorf("%d requests of %d went to it while it was out", out.there, out.sent)
				}
				if first := tallyOf(recs, 1, ill, ill+5*time.Second); name == "fast 500" && first.failed > 3 {
					t.Errorf("%d failures until it was out", first.failed)
				}
				back := tallyOf(recs, 1, well+60*time.Second, end)
				if share := float64(back.there) / float64(back.sent); share < 0.1 || back.failed > 0 {
					t.Errorf("at the end it had %.0f %% of the requests, %d failed", 100*share, back.failed)
				}
				if len(seen) == 0 && out.there == 0 { // the rule shunned a full queue by itself
					return
				}
				if len(seen) < 2 || seen[0].Kind != outlier.Out || seen[0].Endpoint != "h100-1" || seen[len(seen)-1].Kind != outlier.Back {
					t.Errorf("%+v", seen)
				}
				t.Logf("%d of %d failed, %d changes, first: %+v", rep.Failed, rep.Requests, len(seen), seen[0])
			})
		}
	}
}

// TestCrawlingEngineIsOut: an engine a hundred times slower is left to probes, one three times slower
// is for policies to price.
func TestCrawlingEngineIsOut(t *testing.T) {
	for factor, want := range map[float64]outlier.Cause{100: outlier.Slow, 3: outlier.NoCause} {
		causes := map[outlier.Cause]int{}
		d := &outlier.Detector{Changed: func(c outlier.Change) {
			if c.Kind == outlier.Out {
				causes[c.Cause]++
			}
		}}
		src := steady(1500, 30*time.Millisecond)
		for i := range src.Jobs {
			src.Jobs[i].OutputTokens = 200
		}
		cfg := Config{Nodes: h100s(t, 4), Policy: policy(t, "round-robin"), Outliers: d, Progress: 1, Events: []Event{
			{At: 5 * time.Second, Nodes: []int{2}, Kind: Slow, Factor: factor},
		}}
		recs, _ := records(t, cfg, src)
		late := tallyOf(recs, 2, 15*time.Second, time.Hour)
		share := float64(late.there) / float64(late.sent)
		if (causes[want] > 0) != (want != outlier.NoCause) || want == outlier.NoCause && (len(causes) > 0 || share < 0.2) || want == outlier.Slow && share > 0.05 {
			t.Errorf("%v times slower: %v, %.3f of the requests", factor, causes, share)
		}
		t.Logf("%v times slower: %v, %.3f of the requests", factor, causes, share)
	}
}

// TestHealthyEnginesStayIn: nothing is ejected under load, with clients that leave and with a slow engine.
func TestHealthyEnginesStayIn(t *testing.T) {
	d := &outlier.Detector{Changed: func(c outlier.Change) { t.Errorf("%+v", c) }}
	src := steady(4000, 15*time.Millisecond)
	for i := range src.Jobs {
		j := &src.Jobs[i]
		switch i % 7 {
		case 0:
			j.PromptTokens = 30000
		case 1:
			j.Timeout = 5 * time.Millisecond
		case 2:
			j.CancelAfter = 3
		case 3:
			j.OutputTokens = 400
		}
	}
	cfg := Config{Nodes: h100s(t, 4), Policy: policy(t, "least-request"), Outliers: d, Events: []Event{
		{At: 20 * time.Second, Nodes: []int{2}, Kind: Slow, Factor: 3},
	}}
	_, rep := records(t, cfg, src)
	if rep.Left == 0 || rep.Failed > 0 {
		t.Errorf("%+v", rep)
	}
}

// TestLoneEngineIsNeverOut: there is nobody else to ask.
func TestLoneEngineIsNeverOut(t *testing.T) {
	d := &outlier.Detector{Changed: func(c outlier.Change) { t.Errorf("%+v", c) }}
	cfg := Config{Nodes: h100s(t, 1), Policy: policy(t, "round-robin"), Outliers: d, Events: []Event{{Nodes: []int{0}, Kind: Fail, Factor: 1}}}
	recs, rep := records(t, cfg, steady(200, 100*time.Millisecond))
	if rep.Failed != 200 || recs[199].Node != 0 || rep.Refused != 0 {
		t.Errorf("%+v", rep)
	}
}

// TestMostEnginesFail: no more than 30 % are out, the other ones that fail get little.
func TestMostEnginesFail(t *testing.T) {
	d := &outlier.Detector{}
	cfg := Config{Nodes: h100s(t, 10), Policy: policy(t, "least-request"), Outliers: d, Seed: 1, Events: []Event{{Nodes: []int{0, 1, 2, 3, 4, 5}, Kind: Fail, Factor: 1}}}
	recs, _ := records(t, cfg, steady(4000, 10*time.Millisecond))
	all := tallyOf(recs, 0, 10*time.Second, time.Hour)
	out := 0
	for _, s := range d.Report(nil) {
		if s.State == outlier.Ejected {
			out++
		}
	}
	if out != 3 || float64(all.failed) > 0.4*float64(all.sent) {
		t.Errorf("%d are out, %+v", out, all)
	}
	t.Logf("%+v", all)
}
