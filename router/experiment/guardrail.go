package experiment

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// Metric is what a guardrail watches.
type Metric uint8

// The metrics of guardrails.
const (
	Attainment Metric = iota // share of requests with an SLO that met it
	Errors                   // share of requests that failed, for other reasons than the client
	TTFT                     // 90th percentile of the time to first token
	numMetrics
)

// Metrics are the names of metrics in a configuration, as [Metric] numbers them.
func Metrics() []string { return []string{"slo", "errors", "ttft_p90"} }

// String returns the metric's name in a configuration.
func (m Metric) String() string { return Metrics()[m] }

// Guardrail ends an experiment when an arm is worse than the control by more than Margin: points of
// a share (0.05) with Attainment and Errors, a factor above 1 with TTFT.
type Guardrail struct {
	Metric Metric
	Margin float64
}

// DefaultGuardrails are 5 points of attainment, 2 points of errors and a TTFT 1.25 times as long.
func DefaultGuardrails() []Guardrail {
	return []Guardrail{{Attainment, 0.05}, {Errors, 0.02}, {TTFT, 1.25}}
}

// Check returns what is wrong with the guardrail.
func (g Guardrail) check() error {
	switch {
	case g.Metric >= numMetrics:
		return fmt.Errorf("metric %d unknown", g.Metric)
	case g.Metric == TTFT && !(g.Margin > 1 && g.Margin <= 100):
		return fmt.Errorf("%v is no factor above 1, at most 100", g.Margin)
	case g.Metric != TTFT && !(g.Margin > 0 && g.Margin < 1):
		return fmt.Errorf("%v is no share above 0 and below 1", g.Margin)
	}
	return nil
}

// margin is the guardrail's margin in units of differences.
func (g Guardrail) margin() float64 {
	if g.Metric == TTFT {
		return math.Log(g.Margin)
	}
	return g.Margin
}

// Trip says why an experiment was ended.
type Trip struct {
	At           time.Time
	Metric       Metric
	Arm, Control string
	Harm         float64 // by how much the arm was worse, as Guardrail.Margin counts it
	Margin       float64
	Cells        int // stretches of time compared; 0: half of all requests more had failed
}

// String tells it in one line.
func (t Trip) String() string {
	harm, margin := fmt.Sprintf("%.1f points", 100*t.Harm), fmt.Sprintf("%.1f points", 100*t.Margin)
	if t.Metric == TTFT {
		harm, margin = fmt.Sprintf("%.2f times as long", t.Harm), fmt.Sprintf("%.2f times", t.Margin)
	}
	return fmt.Sprintf("%s: arm %s is worse than control %s: %s, where %s are allowed", t.Metric, t.Arm, t.Control, harm, margin)
}

// Result is what one ended request says about its arm.
type Result struct {
	At     time.Time // of the end
	Failed bool
	SLO    bool // it carried one
	Met    bool
	TTFT   time.Duration // 0: there was no token
}

// ResultOf judges an observation. Requests that fail by the client's fault, and those that clients
// gave up before their SLO was missed, say nothing.
func ResultOf(o *features.Observation) (r Result, ok bool) {
	r = Result{At: o.At.Add(o.E2E), SLO: o.SLO != (request.SLO{}), TTFT: o.TTFT}
	switch o.Cause {
	case fleet.Complete:
		r.Met = r.SLO && !over(o.TTFT, o.SLO.TTFT) && !over(o.ITL, o.SLO.ITL) && !over(o.E2E, o.SLO.E2E)
		return r, true
	case fleet.ClientGone:
		late := o.TTFT == 0 && over(o.E2E, o.SLO.TTFT) || over(o.TTFT, o.SLO.TTFT) || over(o.E2E, o.SLO.E2E)
		return r, late
	case fleet.UpstreamError:
		if o.Status >= http.StatusBadRequest && o.Status < http.StatusInternalServerError {
			return r, false
		}
	case fleet.Open, fleet.Truncated, fleet.Expired, fleet.Internal:
	}
	r.Failed = true
	return r, true
}

func over(d, limit time.Duration) bool { return limit > 0 && d > limit }
