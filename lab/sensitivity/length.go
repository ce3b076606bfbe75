package sensitivity

import (
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// lengths tells a policy how long each answer will be: what is foretold of streaming it is so many
// gaps, where the predictor takes a fading mean of all answers.
type lengths struct {
	veil
	tokens int
	fore   []features.Forecast
}

// See implements [cluster.Seer].
func (l *lengths) See(_ time.Duration, j *cluster.Job, _ []*engine.Engine) {
	l.tokens = j.OutputTokens
	if j.CancelAfter > 0 {
		l.tokens = min(l.tokens, j.CancelAfter)
	}
}

// Route implements [router.Policy].
func (l *lengths) Route(q *router.Query, d *router.Decision) error {
	fore := q.Forecasts()
	if fore == nil {
		return l.Policy.Route(q, d)
	}
	l.fore = append(l.fore[:0], fore...)
	for i := range l.fore {
		p := &l.fore[i].Price
		p.Decode = float32(l.tokens) * p.Gap
	}
	return supposing(l.Policy, q, d, l.fore)
}

var (
	_ cluster.Seer  = (*lengths)(nil)
	_ router.Policy = (*lengths)(nil)
)
