package outlier

import "time"

// quiet measures for how long an endpoint has owed a first token while nothing came from it.
type quiet struct {
	waiting int           // streamed requests without a first token
	silent  time.Duration // until mark, while some waited
	mark    time.Time
	largest int64   // uncached tokens of the largest prompt since somebody waits
	pace    float64 // seconds to the first token per uncached token ahead, fading; 0: unknown
}

const (
	leastSilence  = 5 * time.Second
	patience      = 4    // times what was to be expected
	unknownPace   = 2e-4 // seconds per token, while nothing is known
	paceGain      = 1. / 8
	paceTokens    = 512         // least work from which a pace can be told
	leastPatience = time.Second // of a client whose leaving says something
)

// settle brings the account to the present.
func (q *quiet) settle(now time.Time) {
	if q.waiting > 0 && now.After(q.mark) {
		q.silent += now.Sub(q.mark)
	}
	if now.After(q.mark) {
		q.mark = now
	}
}

// begin notes a streamed request with so many uncached tokens.
func (q *quiet) begin(now time.Time, uncached int64) {
	q.settle(now)
	if q.waiting == 0 {
		q.largest = 0
	}
	q.waiting++
	q.largest = max(q.largest, uncached)
}

// end notes that a streamed request waits no more: it got its first token or ended without.
func (q *quiet) end(now time.Time) {
	q.settle(now)
	q.waiting = max(0, q.waiting-1)
}

// life notes that something came from the endpoint.
func (q *quiet) life(at time.Time) {
	if at.Before(q.mark) {
		q.silent = min(q.silent, q.mark.Sub(at))
		return
	}
	q.silent, q.mark = 0, at
}

// learn notes a time to first token after so many uncached tokens, its own included.
func (q *quiet) learn(ttft time.Duration, tokens int64) {
	if tokens < paceTokens || ttft <= 0 {
		return
	}
	x := ttft.Seconds() / float64(tokens)
	if q.pace == 0 {
		q.pace = x
	}
	q.pace += (x - q.pace) * paceGain
}

// limit is the silence that means that the endpoint hangs, given its recent time to first token.
func (q *quiet) limit(ttft time.Duration) time.Duration {
	pace := q.pace
	if pace == 0 {
		pace = unknownPace
	}
	prefill := time.Duration(pace * float64(q.largest) * float64(time.Second))
	return max(leastSilence, patience*ttft, patience*prefill)
}

// long returns how long the endpoint has been silent.
func (q *quiet) long(now time.Time) time.Duration {
	q.settle(now)
	if q.waiting == 0 {
		return 0
	}
	return q.silent
}
