package seed

import (
	"math"

	"github.com/presage-router/presage/predictor"
)

// machine is a model on so many GPUs.
type machine struct {
	model model
	gpu   *gpu
	tp    int
}

// distance says how little the law of one machine tells of another; 0: they are the same.
func (w machine) distance(o machine) float64 {
	var d float64
	if w.model.key == "" || w.model.key != o.model.key {
		d += 1 + ratio(w.model.active, o.model.active) + ratio(w.model.total, o.model.total)
	}
	if w.model.moe() != o.model.moe() {
		d += 10
	}
	if w.gpu != o.gpu {
		d += 0.2 + ratio(w.gpu.flops, o.gpu.flops) + ratio(w.gpu.bytes, o.gpu.bytes)
	}
	return d + ratio(w.model.width, o.model.width) + 0.5*ratio(float64(w.tp), float64(o.tp))
}

func ratio(a, b float64) float64 { return math.Abs(math.Log(a / b)) }

// work is the least that a machine takes, by arithmetic and bandwidth, in seconds.
type work struct {
	token     float64 // to prefill one token
	attention float64 // of it, for each token before it
	weights   float64 // to read the weights once, as one token needs them
	context   float64 // to read the KV of one token
	stream    float64 // that one more stream adds to a step: arithmetic, and the experts it wakes
}

// Rules of thumb over the sizes of public models: layers times width, and bytes of KV of a token with
// grouped attention, both from those of 8e9 parameters.
const (
	layerWidth8, layerPower = 131072, 0.74
	kvBytes8, kvPower       = 131072, 0.43
	wakes                   = 64 // streams that wake all experts
	overhead                = 2e-3
)

func (w machine) work() work {
	m, n := &w.model, float64(w.tp)
	flops, bytes := w.gpu.flops*1e12*n, w.gpu.bytes*1e9*n
	if m.width == 1 {
		flops *= 1.5 // units for 8 bits, as far as they come to bear
	}
	token := 2 * m.active * 1e9 / flops
	wake := (m.total - m.active) * 1e9 * m.width / bytes / wakes
	return work{
		token:     token,
		attention: 4 * layerWidth8 * math.Pow(m.active/8, layerPower) / flops,
		weights:   m.active * 1e9 * m.width / bytes,
		context:   kvBytes8 * math.Pow(m.total/8, kvPower) / bytes,
		stream:    token + wake + 20e-6,
	}
}

// scaled is the law of another machine, carried over to this one.
func (w machine) scaled(o machine, l predictor.Law) predictor.Law {
	a, b := w.work(), o.work()
	l.Theta[1] *= a.token / b.token
	l.Theta[2] *= a.attention / b.attention
	l.Phi[0] *= (overhead + a.weights) / (overhead + b.weights)
	l.Phi[1] *= a.stream / b.stream
	l.Phi[2] *= a.context / b.context
	l.Budget = w.gpu.budget
	return l
}
