package evaluate

import (
	"math"
	"time"
	"unique"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// example is one recorded request as the learner would have met it.
type example struct {
	obs      features.Observation // vector, class and labels; no forecast yet
	known    [2]int               // how many labels, in the order of becoming known, may be used for it
	inflight float64
	run      int
	at       float64 // seconds since the run began; NaN: the file has no clock
}

// course is a part as a sequence of decisions. order[t] are the examples with a label of target t,
// in the order in which these become known.
type course struct {
	examples []example
	order    [2][]int
}

// follow appends the course of a later run: all labels so far are known before it begins.
func (c *course) follow(next *course) {
	n := len(c.examples)
	var labels [2]int
	for t := range labels {
		labels[t] = len(c.order[t])
	}
	for i := range next.examples {
		ex := next.examples[i]
		for t := range labels {
			ex.known[t] += labels[t]
		}
		c.examples = append(c.examples, ex)
	}
	for t := range next.order {
		for _, i := range next.order[t] {
			c.order[t] = append(c.order[t], n+i)
		}
	}
}

// withoutClock takes records of llm-d's router: each carries either TTFT or TPOT and the state of
// its endpoint, and no time. Example i of a target may use the labels of those more than
// 2*running(i) before it, never fewer than an earlier one used.
func withoutClock(rows []datasets.Row) *course {
	c := new(course)
	var least [2]int
	class := unique.Make(fleet.Class{TP: 1})
	for i := range rows {
		r := &rows[i]
		ex := example{obs: record(r), inflight: float64(max(r.State.Running, 0)), at: math.NaN()}
		o := &ex.obs
		o.Where = features.Where{Class: class, Slot: 0, Instance: 1}
		x := &o.X
		for f := range x {
			x[f] = float32(math.NaN())
		}
		hit := min(max(zeroNaN(r.State.HitShare), 0), 1)
		x[features.Prompt] = float32(r.Prompt)
		x[features.Uncached] = float32(float64(r.Prompt) * (1 - hit))
		o.HitTokens = int(float64(r.Prompt) * hit)
		waiting := max(r.State.Waiting, 0)
		x[features.Waiting], x[features.Running] = float32(waiting), float32(r.State.Running)
		x[features.Pending] = float32(waiting)
		x[features.Streams] = float32(max(0, r.State.Running-waiting))
		x[features.PendingUncached] = float32(max(r.State.PrefillTokens, 0))
		x[features.KVUsage] = float32(r.State.KV)
		for t, y := range [2]time.Duration{o.TTFT, o.ITL} {
			if y > 0 {
				least[t] = max(least[t], len(c.order[t])-2*max(r.State.Running, 0))
				c.order[t] = append(c.order[t], len(c.examples))
			}
		}
		ex.known = least
		c.examples = append(c.examples, ex)
	}
	return c
}

// record is what a row says of its request.
func record(r *datasets.Row) features.Observation {
	return features.Observation{
		API: request.Chat, Model: r.Model, Stream: true, Endpoint: r.Endpoint, Picked: r.Endpoint, Schema: features.Schema(),
		PromptTokens: r.Prompt, ExactPrompt: true, CachedTokens: r.Cached, OutputTokens: r.Output, MaxTokens: max(r.MaxTokens, 0),
		Propensity: 1, Cause: fleet.Complete, Status: 200,
		TTFT: span(r.TTFT), ITL: span(r.ITL), E2E: span(r.E2E), Said: features.Nothing(),
	}
}

// span is a time of a row; 0: unknown.
func span(seconds float64) time.Duration {
	if !(seconds > 0 && seconds < longest) {
		return 0
	}
	return time.Duration(seconds * 1e9)
}

func zeroNaN(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}
