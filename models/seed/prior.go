package seed

import (
	"math"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

// entry is the law of one engine.
type entry struct {
	gpu, model string
	tp         int
	eight      bool // weights of 8 bits
	law        predictor.Law
}

// Prior is the law of a class, or false where model or GPU tell nothing. Names are matched without
// case and by their parts: meta-llama/Llama-3.1-8B-Instruct is llama-3.1-8b, and
// NVIDIA-H100-80GB-HBM3 is H100. Its signature is that of [predictor.Options.Prior].
func Prior(c fleet.Class) (predictor.Law, bool) { return prior(c, fitted) }

func prior(c fleet.Class, table []entry) (predictor.Law, bool) {
	m, ok := modelOf(c.Model)
	if !ok {
		return predictor.Law{}, false
	}
	g, ok := gpuOf(c.GPU)
	if !ok {
		return predictor.Law{}, false
	}
	want := machine{m, g, max(c.TP, 1)}
	best, least := -1, math.Inf(1)
	for i := range table {
		if d := want.distance(table[i].machine()); d < least {
			best, least = i, d
		}
	}
	if best < 0 {
		return predictor.Law{}, false
	}
	law := table[best].law
	if least > 0 {
		law = want.scaled(table[best].machine(), law)
	}
	return law, true
}

func (e *entry) machine() machine {
	name := e.model
	if e.eight {
		name += "-fp8"
	}
	m, _ := modelOf(name) // a test sees to these names
	g, _ := gpuOf(e.gpu)
	return machine{m, g, e.tp}
}
