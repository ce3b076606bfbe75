package engine

import (
	"math"
	"time"
)

// glide passes the steps that end at or before now and in which nothing happens but one more token
// for each request: the step under way is the last of them that has not ended, or the one before
// something happens. Without anything to tell of them they are one closed form, since a step's
// duration is linear in the context and the context grows by the same number each step.
func (e *Engine) glide(now int64) {
	m := e.quiet(now)
	if m == 0 {
		return
	}
	if e.cfg.KVEvents || e.cfg.Progress > 0 {
		for range m {
			e.pass()
		}
	} else {
		e.leap(m)
	}
	e.measure()
}

// quiet is the number of steps, from the one under way on, that end at or before limit without
// anything happening at their end: nobody finishes, nobody arrives or is admitted, no block is missing.
func (e *Engine) quiet(limit int64) int64 {
	if !e.pure || e.cfg.SingleStep || e.cfg.Noise > 0 || len(e.leavers)+len(e.forked) > 0 {
		return 0
	}
	if w := e.waiting.n; w > 0 && !e.blocked && e.running.n < e.cfg.MaxSeqs && w > e.lora.deferred {
		return 0
	}
	m := e.dues[0].clock - e.clock
	if e.inboxAt < len(e.inbox) {
		limit = min(limit, e.reqs[e.inbox[e.inboxAt]].arrival-1)
	}
	if e.waiting.n > 0 {
		limit = min(limit, e.lora.loaded(e.base)-1)
	}
	if m <= 0 || e.due() > limit {
		return 0
	}
	m = e.affordable(min(m, maxLeap))
	x := int64(math.MaxInt64)
	if limit-e.base < x/2000 {
		x = (limit - e.base) * 1000
	}
	if m == 0 || e.after(m-1) <= x {
		return m
	}
	// The largest j with a*j^2 + b*j <= y, where after(j) = end + a*j^2 + b*j.
	a := float64(e.pace.decodeKV) * float64(e.decodes) / 2
	b := float64(e.stepFixed) + float64(e.pace.decodeKV)*float64(e.stepContext) + a
	y := float64(x - e.end)
	j := min(m-1, max(0, int64(2*y/(b+math.Sqrt(b*b+4*a*y)))))
	for j > 0 && e.after(j) > x {
		j--
	}
	for j+1 < m && e.after(j+1) <= x {
		j++
	}
	return j + 1
}

// maxLeap bounds a macro-step, so that no time overflows.
const maxLeap = 1 << 16

// after is the end, in ps from base, of the j-th step after the one under way.
func (e *Engine) after(j int64) int64 {
	kv := e.pace.decodeKV
	return e.end + j*(e.stepFixed+kv*e.stepContext) + kv*int64(e.decodes)*(j*(j+1)/2)
}

// affordable is the number of steps, at most m, after each of which the next finds its blocks.
func (e *Engine) affordable(m int64) int64 {
	n, free := int64(len(e.fills.count)), int64(e.cache.free())
	if (m/n+1)*int64(e.decodes) <= free {
		return m
	}
	j := min(m, free/int64(e.decodes)*n)
	free -= j / n * int64(e.decodes)
	for j -= j % n; j < m; j++ {
		if free -= int64(e.fills.count[e.fills.phase(e.clock+j)]); free < 0 {
			break
		}
	}
	return j
}

// needed is the number of blocks that the next m steps take.
func (e *Engine) needed(m int64) int {
	n := int64(len(e.fills.count))
	need := m / n * int64(e.decodes)
	for j := m - m%n; j < m; j++ {
		need += int64(e.fills.count[e.fills.phase(e.clock+j)])
	}
	return int(need)
}

// leap passes m steps at once.
func (e *Engine) leap(m int64) {
	e.cache.take(e.needed(m))
	start, end := e.after(m-1), e.after(m)
	begun := e.began
	e.base, e.end = e.base+start/1000, end-start/1000*1000
	e.start, e.began = e.base, e.base+(start%1000+999)/1000
	e.clock += m
	grown := m * int64(e.decodes)
	e.context += grown
	e.stepContext += grown
	e.stats.Steps += uint64(m)
	e.stats.GenerationTokens += uint64(grown)
	e.stats.Busy += time.Duration(e.began - begun)
}

// pass passes one step, telling what is to be told.
func (e *Engine) pass() {
	at := e.due()
	if e.cfg.Progress > 0 {
		e.beat(at)
	}
	e.stats.Steps++
	e.stats.GenerationTokens += uint64(e.decodes)
	e.stats.Busy += time.Duration(at - e.began)
	e.base, e.end = e.base+e.end/1000, e.end%1000
	e.start, e.began = e.base, at
	e.stepContext = e.context
	e.cache.take(int(e.fills.count[e.fills.phase(e.clock)]))
	e.clock++
	e.context += int64(e.decodes)
	if e.cfg.KVEvents {
		e.filled()
	}
	e.end += e.stepFixed + e.pace.decodeKV*e.stepContext
}

// horizon is the end of the first step at whose end something may happen.
func (e *Engine) horizon() int64 {
	m := e.quiet(never)
	if m == 0 {
		return e.due()
	}
	if e.cfg.Progress > 0 {
		for j := range min(m, int64(e.cfg.Progress)) {
			if e.beats.count[e.beats.phase(e.clock+j)] > 0 {
				m = j
				break
			}
		}
	}
	return e.base + (e.after(m)+999)/1000
}

// noisy multiplies a duration by the log-normal factor, if there is any.
func (e *Engine) noisy(d int64) int64 {
	if e.cfg.Noise == 0 {
		return d
	}
	return int64(float64(d) * math.Exp(e.cfg.Noise*e.rng.NormFloat64()))
}
