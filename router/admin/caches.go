package admin

import (
	"time"

	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/scrape"
	"github.com/presage-router/presage/internal/telemetry"
)

// What the page says of the prefix index and of the scraper.
var (
	descHeld     = desc("prefix_blocks", "Prompt blocks that endpoints are believed to hold, once per endpoint.")
	descDistinct = desc("prefix_distinct_blocks", "Different prompt blocks among these.")
	descDoubted  = desc("prefix_doubted_endpoints", "Endpoints whose engine was found not to cache prefixes.")
	descGone     = desc("prefix_dropped_blocks_total", "Blocks no longer believed to be held, by cause.", "cause")

	descScrapes      = desc("endpoint_scrapes_total", "Metrics pages of the endpoint that were read.", "endpoint")
	descScrapeErrors = desc("endpoint_scrape_errors_total", "Scrapes of the endpoint without a page, by cause.", "endpoint", "cause")
	descScrapeTime   = desc("endpoint_scrape_duration_seconds", "Time that the last scrape took.", "endpoint")
	descRefused      = desc("endpoint_refused_values_total", "Values on the endpoint's pages that were refused: out of range or unreadable.", "endpoint")
	descMissing      = desc("endpoint_missing_gauges_total", "Gauges that the endpoint's pages should have had and did not.", "endpoint")
	descRestarts     = desc("endpoint_restarts_total", "Restarts of the engine seen since the endpoint joined.", "endpoint")
)

// prefixes says what the prefix index holds and has dropped.
func (e emitter) prefixes(st *prefix.Stats) {
	e.gauge(descHeld, float64(st.Blocks))
	e.gauge(descDistinct, float64(st.Distinct))
	e.gauge(descDoubted, float64(st.Doubted))
	e.counter(descGone, float64(st.Evicted), pairs("cause", "evicted")...)
	e.counter(descGone, float64(st.Lost), pairs("cause", "lost")...)
	e.counter(descGone, float64(st.Restarted), pairs("cause", "restarted")...)
	e.counter(descGone, float64(st.Withdrawn), pairs("cause", "withdrawn")...)
}

// scrapes says how scraping goes, for the endpoints that are shown. A cause that never occurred is
// absent.
func (c *collector) scrapes(e emitter, now time.Time, shown map[string]bool) {
	for _, st := range c.scraped(now, nil) {
		if !shown[st.Name] {
			continue
		}
		name := telemetry.Clean(st.Name)
		is := pairs("endpoint", name)
		e.counter(descScrapes, float64(st.Pages), is...)
		e.gauge(descScrapeTime, st.Took.Seconds(), is...)
		e.counter(descRefused, float64(st.Refused), is...)
		e.counter(descMissing, float64(st.Missing), is...)
		for cause, n := range st.Failures {
			if n > 0 {
				e.counter(descScrapeErrors, float64(n), pairs("cause", scrape.Cause(cause).String(), "endpoint", name)...)
			}
		}
	}
}
