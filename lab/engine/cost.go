package engine

import "math"

// pace is the step-time model in picoseconds, with the factors of the moment folded in.
type pace struct {
	knots, g    []float64 // g in picoseconds, kernel factor included
	step, seq   float64
	lm          [3]float64
	prefillFix  float64
	prefillLin  float64
	prefillQuad float64
	decodeFix   float64
	decodeSeq   float64
	decodeKV    int64 // per token of context, whole picoseconds: macro-steps stay exact
	factor      float64
}

const picos = 1e6 // picoseconds per microsecond

// setPace refreshes the model from the configuration; factor is that of the LoRA batch.
func (e *Engine) setPace(factor float64) {
	c, p := &e.cfg.Coefs, &e.pace
	if p.g == nil {
		p.knots, p.g = c.Knots, make([]float64, len(c.G))
	}
	f := e.cfg.Slowdown * factor * picos
	for i, g := range c.G {
		p.g[i] = g * e.cfg.Kernel * f
	}
	p.step, p.seq = e.cfg.Profile.Step*f, e.cfg.Profile.Seq*f
	p.lm = [3]float64{c.LM1 * f, c.LM64 * f, c.LM256 * f}
	p.prefillFix, p.prefillLin, p.prefillQuad = c.PrefillFix*f, c.PrefillLin*f, c.PrefillQuad*f
	p.decodeFix, p.decodeSeq = c.DecodeFix*f, c.DecodeSeq*f
	p.decodeKV = int64(math.Round(c.DecodeKV * f))
	p.factor = factor
}

// batch is what decides the duration of a step.
type batch struct {
	seqs    int     // requests
	tokens  int     // batched tokens
	decodes int     // of the requests, decoding
	prefill bool    // any prefill chunk
	lin     int     // prefill tokens
	quad    float64 // sum over chunks of q*(ctx+q/2)
}

// fixed is the part of a step's duration, in picoseconds, that does not depend on the context of
// the decoding requests:
//
//	c0 + cseq*S + mk*G(T) + LM(S) + [prefill] Pfix + Plin*q + Pquad*q*(ctx+q/2) + [no prefill] Dfix + Dseq*n
func (p *pace) fixed(b *batch) int64 {
	t := p.step + p.seq*float64(b.seqs) + p.layers(float64(b.tokens)) + p.head(float64(b.seqs)) + p.decodeSeq*float64(b.decodes)
	if b.prefill {
		t += p.prefillFix + p.prefillLin*float64(b.lin) + p.prefillQuad*b.quad
	} else {
		t += p.decodeFix
	}
	return int64(math.Round(t))
}

// layers is G: linear between knots, the first value before, the last slope beyond.
func (p *pace) layers(tokens float64) float64 {
	k := p.knots
	if tokens <= k[0] {
		return p.g[0]
	}
	lo, hi := 0, len(k)-1
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; k[mid] <= tokens {
			lo = mid
		} else {
			hi = mid
		}
	}
	return p.g[lo] + (p.g[hi]-p.g[lo])*(tokens-k[lo])/(k[hi]-k[lo])
}

// head is LM(S): linear between the measured batches of 1, 64 and 256, and the mean slope beyond,
// which must not fall below zero where the measurements are noisy.
func (p *pace) head(seqs float64) float64 {
	switch {
	case seqs <= 64:
		return p.lm[0] + (p.lm[1]-p.lm[0])*(seqs-1)/63
	case seqs <= 256:
		return p.lm[1] + (p.lm[2]-p.lm[1])*(seqs-64)/192
	}
	return p.lm[2] + max(0, p.lm[2]-p.lm[0])*(seqs-256)/255
}

// StepTime is the duration of one step in microseconds, without noise, for a batch of decoding
// requests with the given sum of contexts and prefill chunks of chunk tokens after ctx ones. It is
// what validations and predictors' priors compare against.
func (e *Engine) StepTime(decodes, context int, chunks ...[2]int) float64 {
	b := batch{seqs: decodes + len(chunks), tokens: decodes, decodes: decodes, prefill: len(chunks) > 0}
	for _, c := range chunks {
		b.add(c[0], c[1])
	}
	return float64(e.pace.fixed(&b)+e.pace.decodeKV*int64(context)) / picos
}

// add counts a prefill chunk of q tokens after ctx others.
func (b *batch) add(q, ctx int) {
	b.prefill = true
	b.tokens += q
	b.lin += q
	b.quad += float64(q) * (float64(ctx) + float64(q)/2)
}
