package sensitivity

import (
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// veil is a policy with something between it and the router: it passes on all but Route.
type veil struct{ router.Policy }

// Tick implements [router.Ticker].
func (v veil) Tick(now time.Time, s *fleet.Snapshot) {
	if t, ok := v.Policy.(router.Ticker); ok {
		t.Tick(now, s)
	}
}

// Observe implements [router.Observer].
func (v veil) Observe(o *features.Observation) {
	if x, ok := v.Policy.(router.Observer); ok {
		x.Observe(o)
	}
}

var (
	_ router.Ticker   = veil{}
	_ router.Observer = veil{}
)
