package fleet

import (
	"math"
	"time"
)

// Recent is what just happened on an endpoint, as the router saw it: the freshest evidence of how
// fast the engine goes, there before any request has ended.
type Recent struct {
	TTFT       time.Duration // fading mean of the last first tokens, gain 1/4; 0: none seen
	ITL        time.Duration // fading mean of the mean gaps of ended answers, gain 1/6; 0: none seen
	StreamTime time.Duration // sum over the streaming requests of the time since their first token
	Generated  int64         // tokens of the streaming requests so far

	// Running totals since the instance joined, for differences over a window.
	Streamed  time.Duration // between the first and the last token so far of every answer
	Gaps      int64         // tokens after the first ones: Streamed/Gaps is the mean gap
	Prefilled int64         // uncached prompt tokens of requests whose first token came

	rateAt            time.Time // when the rates were last faded
	firsts, prefilled float64
	loadTok, loadAttn float64
}

// FirstRate is the number of first tokens per second, fading with tau = 1 s.
func (r *Recent) FirstRate(now time.Time) float64 { return r.firsts * faded(now.Sub(r.rateAt)) }

// PrefillRate is the number of uncached prompt tokens whose first token came, per second, fading alike.
func (r *Recent) PrefillRate(now time.Time) float64 { return r.prefilled * faded(now.Sub(r.rateAt)) }

// Rates are FirstRate and PrefillRate, for the price of one.
func (r *Recent) Rates(now time.Time) (firsts, prefill float64) {
	if r.firsts == 0 && r.prefilled == 0 {
		return 0, 0
	}
	k := faded(now.Sub(r.rateAt))
	return r.firsts * k, r.prefilled * k
}

// PrefillLoad is the prefill work whose first token came, per second, fading with tau = 10 s:
// uncached tokens, and twice the attention work in token^2 (see [Inflight]).
func (r *Recent) PrefillLoad(now time.Time) (tokens, attention float64) {
	if r.loadTok == 0 && r.loadAttn == 0 {
		return 0, 0
	}
	k := fadedBy(now.Sub(r.rateAt), loadTau)
	return r.loadTok * k, r.loadAttn * k
}

// faded is what is left of a rate after d.
func faded(d time.Duration) float64 { return fadedBy(d, rateTau) }

func fadedBy(d time.Duration, tau float64) float64 {
	if d <= 0 {
		return 1
	}
	return math.Exp(-float64(d) / tau)
}

// StepTime is the mean gap between tokens of the answers now streaming, from counting their tokens,
// or 0 while too few have come to tell. It needs no end of any request.
func (r *Recent) StepTime() time.Duration {
	if r.Generated < minCounted {
		return 0
	}
	return r.StreamTime / time.Duration(r.Generated)
}

const (
	minCounted = 4
	rateTau    = float64(time.Second)
	loadTau    = float64(10 * time.Second)
	gainTTFT   = 4
	gainITL    = 6
)

// history is the instance's running account behind Recent, guarded by instance.mu.
type history struct {
	ttft, itl time.Duration
	firstSum  time.Duration // sum over streaming of (first token - since)
	generated int64
	rateAt    time.Time // when the rates were last faded
	firsts    float64
	prefilled float64
	loadTok   float64
	loadAttn  float64
	streamed  time.Duration
	gaps      int64
	computed  int64
}

func (h *history) fade(now time.Time) {
	if d := now.Sub(h.rateAt); d > 0 {
		k, l := faded(d), fadedBy(d, loadTau)
		h.firsts *= k
		h.prefilled *= k
		h.loadTok *= l
		h.loadAttn *= l
		h.rateAt = now
	}
}

// sawFirst notes the first token of a request.
func (h *history) sawFirst(now time.Time, ttft time.Duration, w Work) {
	h.fade(now)
	u := w.Prompt - w.Cached
	h.computed += u
	h.firsts += float64(time.Second) / rateTau
	h.prefilled += float64(u) * float64(time.Second) / rateTau
	h.loadTok += float64(u) * float64(time.Second) / loadTau
	h.loadAttn += float64(w.attention()) * float64(time.Second) / loadTau
	h.ttft = blend(h.ttft, ttft, gainTTFT)
}

// sawEnd notes the end of an answer of n tokens that streamed for d.
func (h *history) sawEnd(d time.Duration, n int64) {
	if n > 1 && d > 0 {
		h.itl = blend(h.itl, d/time.Duration(n-1), gainITL)
	}
}

func blend(old, x time.Duration, gain int64) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/time.Duration(gain)
}

// recent is the account at an instant. The caller holds in.mu.
func (in *instance) recent(now time.Time) Recent {
	h := &in.hist
	return Recent{
		TTFT: h.ttft, ITL: h.itl, Generated: h.generated, StreamTime: max(0, now.Sub(in.since)*time.Duration(in.seen)-h.firstSum),
		Streamed: h.streamed, Gaps: h.gaps, Prefilled: h.computed,
		rateAt: h.rateAt, firsts: h.firsts, prefilled: h.prefilled,
		loadTok: h.loadTok, loadAttn: h.loadAttn,
	}
}
