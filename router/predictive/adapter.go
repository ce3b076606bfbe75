package predictive

import (
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// adapterWait is the seconds that an answer takes there, if one has to end before the request's LoRA
// adapter can be loaded: all slots of the endpoint are taken by others.
func adapterWait(q *router.Query, i int, f *features.Forecast) float64 {
	if !q.AdapterFull(i) {
		return 0
	}
	return float64(f.Price.Decode)
}
