package oracle

import (
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// awaited is the id that the request at hand has on a clone.
const awaited = ^uint64(0)

// horizon is how far a clone is followed.
const horizon = time.Hour

// course is when an engine's requests get their first tokens and end, if nothing else arrives; in
// order of time.
type course []mark

// mark is one such instant.
type mark struct {
	at    time.Duration
	first bool // a first token; else an end
}

// follow appends the course of an engine, which is at the present and stays as it is; with the
// request, where there is one. It reports false where the engine refuses it.
func (c course) follow(e *engine.Engine, now time.Duration, j *cluster.Job) (course, bool) {
	e = e.Clone()
	e.Mute()
	if j != nil && !submit(e, now, j) {
		return c, false
	}
	for due, ok := e.Next(); ok && due <= now+horizon; due, ok = e.Next() {
		for _, ev := range e.Advance(due) {
			if first := ev.Kind == engine.FirstToken; first || ev.Kind == engine.Finished {
				c = append(c, mark{ev.At, first})
			}
		}
	}
	return c, true
}

func submit(e *engine.Engine, now time.Duration, j *cluster.Job) bool {
	_, err := e.Submit(now, &engine.Request{
		ID: awaited, PromptTokens: j.PromptTokens, OutputTokens: j.OutputTokens,
		Blocks: j.Blocks, Adapter: j.Adapter, Priority: int32(-j.Priority),
	})
	return err == nil
}

// seconds sums, over all requests of a course, the time from now to the first token, where that is
// still to come, plus a share of the time that is left of streaming: TTFT + share*(end - first) for all,
// less what lies before now and is the same on every course.
func (c course) seconds(now time.Duration, share float64) float64 {
	var firsts, ends time.Duration
	for _, m := range c {
		switch d := m.at - now; {
		case d <= 0:
		case m.first:
			firsts += d
		default:
			ends += d
		}
	}
	return (1-share)*firsts.Seconds() + share*ends.Seconds()
}

// Cached is how many tokens of the request's prompt the engine will find in its prefix cache when it
// comes to it, if nothing else arrives; 0 where it refuses the request. The engine must be at the
// present, and stays as it is.
func Cached(e *engine.Engine, now time.Duration, j *cluster.Job) int {
	e = e.Clone()
	e.Mute()
	if !submit(e, now, j) {
		return 0
	}
	for due, ok := e.Next(); ok && due <= now+horizon; due, ok = e.Next() {
		for _, ev := range e.Advance(due) {
			if ev.ID == awaited && ev.Kind == engine.Scheduled {
				return int(ev.N)
			}
		}
	}
	return 0
}
