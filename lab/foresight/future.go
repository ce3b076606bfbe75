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
	f, ok := follow(e, now, j)
	if !ok {
		return Future{}, false
	}
	return f.end()
}

// follower is a clone of an engine with a request whose fate is awaited.
type follower struct {
	*engine.Engine
	began, first time.Duration
	tokens       int
	done         bool
	future       Future
}

const awaited = ^uint64(0) // its id

func follow(e *engine.Engine, now time.Duration, j *cluster.Job) (*follower, bool) {
	f := &follower{Engine: e.Clone(), began: now, tokens: j.OutputTokens}
	return f, f.submit(now, awaited, j, j.OutputTokens)
}

func (f *follower) submit(now time.Duration, id uint64, j *cluster.Job, tokens int) bool {
	_, err := f.Submit(now, &engine.Request{
		ID: id, PromptTokens: j.PromptTokens, OutputTokens: tokens,
		Blocks: j.Blocks, Adapter: j.Adapter, Priority: int32(-j.Priority),
	})
	return err == nil
}

// advance brings the clone to the given time.
func (f *follower) advance(now time.Duration) {
	for _, ev := range f.Advance(now) {
		switch {
		case ev.ID != awaited:
		case ev.Kind == engine.FirstToken:
			f.first = ev.At
		case ev.Kind == engine.Finished:
			f.done, f.future.TTFT = true, (f.first - f.began).Seconds()
			if f.tokens > 1 {
				f.future.ITL = (ev.At - f.first).Seconds() / float64(f.tokens-1)
			}
		}
	}
}

// end follows the clone until the request is answered.
func (f *follower) end() (Future, bool) {
	for due, ok := f.Next(); ok && !f.done && due <= f.began+horizon; due, ok = f.Next() {
		f.advance(due)
	}
	return f.future, f.done
}

// crowd is the clones of one engine that live on with the run: every later request that is sent to
// the engine is submitted to them too.
type crowd []*follower

// send submits a later request. One whose client will leave is taken as that much shorter.
func (c *crowd) send(now time.Duration, j *cluster.Job) {
	live := (*c)[:0]
	for _, f := range *c {
		if f.advance(now); f.done {
			continue
		}
		tokens := j.OutputTokens
		if j.CancelAfter > 0 {
			tokens = min(tokens, j.CancelAfter)
		}
		f.submit(now, 0, j, tokens)
		live = append(live, f)
	}
	*c = live
}
