package foresight

import (
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// Future is what a request would get.
type Future struct {
	TTFT, ITL float64 // seconds; 0: none
}

// horizon is how far an engine is followed.
const horizon = time.Hour

// Foresee submits the request to a clone of the engine and follows it to the end of the answer, with
// no later arrivals. It reports false where the engine refuses the request, or does not answer within
// an hour. The engine must be at the present, and stays as it is.
func Foresee(e *engine.Engine, now time.Duration, j *cluster.Job) (Future, bool) {
	const id = ^uint64(0)
	c := e.Clone()
	_, err := c.Submit(now, &engine.Request{
		ID: id, PromptTokens: j.PromptTokens, OutputTokens: j.OutputTokens,
		Blocks: j.Blocks, Adapter: j.Adapter, Priority: int32(-j.Priority),
	})
	if err != nil {
		return Future{}, false
	}
	var first time.Duration
	for due, ok := c.Next(); ok && due <= now+horizon; due, ok = c.Next() {
		for _, ev := range c.Advance(due) {
			if ev.ID != id {
				continue
			}
			switch ev.Kind {
			case engine.FirstToken:
				first = ev.At
			case engine.Finished:
				f := Future{TTFT: (first - now).Seconds()}
				if j.OutputTokens > 1 {
					f.ITL = (ev.At - first).Seconds() / float64(j.OutputTokens-1)
				}
				return f, true
			}
		}
	}
	return Future{}, false
}
