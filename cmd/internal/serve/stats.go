package serve

import (
	"time"

	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/admin"
	"github.com/presage-router/presage/router/extproc"
)

// stats turns what the ext_proc server reports into metrics.
type stats struct {
	*admin.Metrics
	router *router.Router
}

// Spent implements [extproc.Stats]. The decision's time is also that of the policy in force.
func (s stats) Spent(p extproc.Phase, d time.Duration) {
	s.Metrics.Spent(p.String(), d)
	if p == extproc.Decide {
		s.Decided(s.router.Policy().Name(), d)
	}
}

// Ended implements [extproc.Stats].
func (s stats) Ended(model string, routed bool, o extproc.Outcome) {
	s.Metrics.Ended(model, routed, o.String())
}

var _ extproc.Stats = stats{}
