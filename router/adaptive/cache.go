package adaptive

import (
	"math"
	"time"
)

// Cache is what the prefix caches could save at most: the share of the prompt tokens of the last
// [Cache.Memory] that some one candidate was believed to hold. It does not depend on where requests
// went, so that spreading them does not hide what following the cache would be worth.
type Cache struct {
	Memory time.Duration

	prompt, cached float64 // tokens, fading
}

// Name implements [Detector].
func (*Cache) Name() string { return "cache" }

// Detect implements [Detector].
func (c *Cache) Detect(s *Sample) float64 {
	kept := 1 - reached(s.Elapsed, c.Memory)
	c.prompt = c.prompt*kept + s.Prompt
	c.cached = c.cached*kept + s.Cached
	if c.prompt < 1 {
		return math.NaN()
	}
	return c.cached / c.prompt
}

var _ Detector = (*Cache)(nil)
