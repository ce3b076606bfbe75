package evaluate

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
)

// Observations are the rows of the part as the router would have logged them, in order of time. Runs
// follow each other as if each had begun when the one before was over. Formats without times of
// arrival have no such order.
func (p *Part) Observations() ([]features.Observation, error) {
	if p.Format == datasets.EPP {
		return nil, fmt.Errorf("%s: its records (%s) have no times, so they cannot be ordered or split; judge them with presage-train eval", p.File, p.Format)
	}
	c, err := p.course()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	out := make([]features.Observation, len(c.examples))
	var shift, latest time.Duration
	for i := range c.examples {
		if i > 0 && c.examples[i].run != c.examples[i-1].run {
			shift = latest + time.Second
		}
		o := c.examples[i].obs
		o.At = o.At.Add(shift)
		out[i] = o
		latest = max(latest, o.At.Sub(epoch)+o.E2E)
	}
	return out, nil
}
