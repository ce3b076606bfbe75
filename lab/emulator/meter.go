package emulator

import "github.com/presage-router/presage/lab/engine"

// histogram counts values by upper bounds, as a Prometheus histogram does.
type histogram struct {
	bounds []float64
	counts []uint64 // not cumulative; one more than bounds
	sum    float64
	n      uint64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
	h.n++
}

// meter holds the histograms and counters of the metrics page that the engine itself does not keep.
// Times are seconds on a client's clock.
type meter struct {
	ttft, itl, tpot                                histogram
	e2e, queue, inference, prefill, decode         histogram
	prompt, generation, maxGeneration, n, maxToken histogram
	iteration, preemptions, computed               histogram

	stop, length, aborted, failed, rejected uint64
}

// Bucket bounds of vLLM 0.32, v1/metrics/buckets.py.
func newMeter() meter {
	latency := []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	first := []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	gap := []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	tokens := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	batch := []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	return meter{
		ttft: newHistogram(first), itl: newHistogram(gap), tpot: newHistogram(gap),
		e2e: newHistogram(latency), queue: newHistogram(latency), inference: newHistogram(latency),
		prefill: newHistogram(latency), decode: newHistogram(latency),
		prompt: newHistogram(tokens), generation: newHistogram(tokens), maxGeneration: newHistogram(tokens),
		n: newHistogram([]float64{1, 2, 5, 10, 20}), maxToken: newHistogram(tokens),
		iteration: newHistogram(batch), preemptions: newHistogram([]float64{1, 2, 3, 4, 5, 10, 20}), computed: newHistogram(tokens),
	}
}

// asked notes a request's parameters.
func (m *meter) asked(a *ask) {
	m.n.observe(float64(a.choices))
	m.maxToken.observe(float64(a.cap))
}

// first notes a first token.
func (m *meter) first(ttft float64) { m.ttft.observe(ttft) }

// gap notes the time between two tokens.
func (m *meter) gap(itl float64) { m.itl.observe(itl) }

// step notes the tokens of the step that ended, if it was one: they cannot be told apart otherwise.
func (m *meter) step(before, after *engine.Stats) {
	if after.Steps == before.Steps+1 {
		m.iteration.observe(float64(after.ComputedTokens - before.ComputedTokens + after.GenerationTokens - before.GenerationTokens))
	}
}

// finished notes a complete answer.
func (m *meter) finished(s *stream, e *Emulator) {
	if s.unit.cut {
		m.length++
	} else {
		m.stop++
	}
	output := s.unit.output
	m.prompt.observe(float64(len(s.unit.tokens)))
	m.generation.observe(float64(output))
	m.maxGeneration.observe(float64(output))
	m.computed.observe(float64(len(s.unit.tokens) - int(s.cached.Load())))
	m.preemptions.observe(float64(s.preempted))
	m.e2e.observe(e.seconds(s.last - s.arrived))
	m.queue.observe(max(0, e.seconds(s.scheduled-s.arrived-e.cfg.Engine.Profile.Frontend)))
	m.inference.observe(e.seconds(s.last - s.scheduled))
	m.prefill.observe(e.seconds(s.first - s.scheduled))
	m.decode.observe(e.seconds(s.last - s.first))
	if output > 1 {
		m.tpot.observe(e.seconds(s.last-s.first) / float64(output-1))
	}
}
