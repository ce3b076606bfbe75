package calibrate

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/engine"
)

// PassFit is the step-time form fitted to the passes of one run.
type PassFit struct {
	Coefs  engine.Coefs // without GPU, model and memory
	Fitted int          // passes the fit saw
	Held   int          // passes that judge it
	Error  float64      // median absolute relative error of the step time on the held-out passes

	HeldPrefill  int     // of the held-out passes, those with any prefill
	ErrorPrefill float64 // their median error; NaN without any
}

// FitPasses fits the step-time form to recorded passes of one engine: of the passes after warm-up,
// every other one is fitted and the rest judge. It needs at least 100.
func FitPasses(passes []datasets.Pass) (*PassFit, error) {
	warm := warmed(passes)
	if len(warm) < 100 {
		return nil, fmt.Errorf("%d passes after warm-up: too few to fit; at least 100 are needed", len(warm))
	}
	largest := 0
	for _, p := range warm {
		largest = max(largest, tokensOf(p))
	}
	form := newForm(largest)
	var x, held [][]float64
	var y, actual []float64
	for i, p := range warm {
		if i%2 == 0 {
			x, y = append(x, form.features(p)), append(y, p.Latency*1e6)
		} else {
			held, actual = append(held, form.features(p)), append(actual, p.Latency*1e6)
		}
	}
	b := regression(x, y)
	f := &PassFit{Coefs: form.coefs(b), Fitted: len(x), Held: len(held)}
	var errs, prefill []float64
	for i := range held {
		e := math.Abs(dot(held[i], b)/actual[i] - 1)
		errs = append(errs, e)
		if held[i][len(form.knots)+prefillFix] > 0 {
			prefill = append(prefill, e)
		}
	}
	f.Error, f.HeldPrefill, f.ErrorPrefill = stat.Median(errs), len(prefill), stat.Median(prefill)
	return f, nil
}

// warmed returns the passes without warm-up. The first passes with a new kind and size of batch
// compile and tune kernels, which takes up to seconds; three of each kind and power of two of
// tokens are left out, and passes without work.
func warmed(passes []datasets.Pass) []*datasets.Pass {
	const warmups = 3
	seen := map[[3]int]int{}
	out := make([]*datasets.Pass, 0, len(passes))
	for i := range passes {
		p := &passes[i]
		tokens := tokensOf(p)
		if tokens == 0 || !(p.Latency > 0) {
			continue
		}
		k := [3]int{p.Rank, bits.Len(uint(p.PrefillTokens)), bits.Len(uint(p.DecodeRequests))}
		if seen[k]++; seen[k] > warmups {
			out = append(out, p)
		}
	}
	return out
}

func tokensOf(p *datasets.Pass) int { return p.PrefillTokens + p.DecodeRequests }

// form is the step-time form of package engine as a linear function of its coefficients:
//
//	G(T) by knots + [prefill] Pfix + Plin*q + Pquad*sum q*(ctx+q/2) + [no prefill] Dfix + Dkv*sum ctx
//
// c0, cseq and Dseq cannot be told from G, in which the fit leaves them.
type form struct{ knots []float64 }

// newForm places knots at the batch sizes up to the largest for which CUDA graphs are captured (a
// batch between two sizes is padded, which makes G a staircase there) and at powers of two.
func newForm(largest int) *form {
	f := &form{knots: []float64{1}}
	add := func(k int) {
		if last := f.knots[len(f.knots)-1]; float64(k) > last {
			f.knots = append(f.knots, float64(k))
		}
	}
	sizes := []int{1, 2, 4}
	for s := 8; s <= 128; s += 8 {
		sizes = append(sizes, s)
	}
	for _, s := range append(sizes, 256, 512, 1024, 2048, 4096, 8192, 16384) {
		add(s)
		if s < 128 {
			add(s + 1)
		}
		if s >= largest {
			break
		}
	}
	return f
}

// Features after those of the knots.
const (
	prefillFix = iota
	prefillLin
	prefillQuad
	decodeFix
	decodeKV
	others
)

// features are the factors of the coefficients in a pass's step time.
func (f *form) features(p *datasets.Pass) []float64 {
	n := len(f.knots)
	x := make([]float64, n+others)
	x[0] = 1 // G at one token
	tokens := float64(tokensOf(p))
	for i := 1; i < n; i++ {
		share := (tokens - f.knots[i-1]) / (f.knots[i] - f.knots[i-1])
		if i < n-1 {
			share = min(share, 1)
		}
		x[i] = max(0, share)
	}
	o := x[n:]
	o[decodeKV] = float64(max(0, p.DecodeKV))
	if p.PrefillTokens == 0 {
		o[decodeFix] = 1
		return x
	}
	o[prefillFix], o[prefillLin] = 1, float64(p.PrefillTokens)
	// Only sums are recorded: contexts count as spread evenly over the chunks.
	chunks := float64(max(1, p.PrefillRequests))
	mean := float64(p.PrefillTokens) / chunks
	squares := chunks * (mean*mean + zeroIfUnknown(p.PrefillVar))
	o[prefillQuad] = float64(p.PrefillTokens)*float64(max(0, p.PrefillKV))/chunks + squares/2
	return x
}

func zeroIfUnknown(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// coefs are the fitted coefficients as those of an engine.
func (f *form) coefs(b []float64) engine.Coefs {
	n := len(f.knots)
	c := engine.Coefs{Knots: f.knots, G: make([]float64, n)}
	sum := 0.0
	for i := range c.G {
		sum += b[i]
		c.G[i] = max(1, sum) // an engine's steps take time
	}
	o := b[n:]
	c.PrefillFix, c.PrefillLin, c.PrefillQuad = o[prefillFix], o[prefillLin], o[prefillQuad]
	c.DecodeFix, c.DecodeKV = o[decodeFix], o[decodeKV]
	return c
}
