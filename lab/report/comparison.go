package report

// Comparison is what a comparison showed. Times are in seconds, rates in requests per second, shares
// from 0 to 1, except where a field says so. Names come from users and may hold anything.
type Comparison struct {
	Scope    Scope    `json:"scope"`
	Ours     string   `json:"ours"`     // policy that the others are held against, A of the verdict
	Against  string   `json:"against"`  // B of the verdict; empty: the best of the others by the primary metric
	Primary  Primary  `json:"primary"`  // the one metric that the verdict is about
	Policies []Policy `json:"policies"` // rows of the table, ours among them
	Versus   []Versus `json:"versus"`   // ours minus each other policy
	Curves   []Curve  `json:"curves,omitempty"`

	// Scenarios is the primary metric by kind of traffic, where several were played; it alone leads to
	// the verdict that it depends on traffic.
	Scenarios []Slice `json:"scenarios,omitempty"`
	// Classes are differences by class of requests: exploratory, P adjusted by Holm over all of them.
	Classes []Slice `json:"classes,omitempty"`

	Control     *Control     `json:"control,omitempty"` // nil: none was played
	Captured    *Captured    `json:"captured,omitempty"`
	Reliability *Reliability `json:"reliability,omitempty"`
	Timelines   []Timeline   `json:"timelines,omitempty"`
	Refusals    []string     `json:"refusals,omitempty"` // what else is not claimed, one sentence each
	Method      Method       `json:"method"`
	Live        *Live        `json:"live,omitempty"` // set for live traffic alone
}

// Scope says what was compared.
type Scope struct {
	Scenario  string   `json:"scenario"`
	Endpoints []string `json:"endpoints,omitempty"` // as "6 H100", "2 A100"
	Seeds     int      `json:"seeds,omitempty"`     // of simulated runs: equal arrivals for every policy
	Blocks    int      `json:"blocks,omitempty"`    // of live traffic
	Requests  int      `json:"requests"`            // over all runs
	Planned   int      `json:"runs_planned,omitempty"`
	Done      int      `json:"runs_done,omitempty"` // fewer than planned: interrupted
}

// Primary is a metric that a verdict may be about.
type Primary string

// The primary metrics.
const (
	SustainedRate Primary = "sustained_rate" // requests/s, the highest rate at which 90 % keep their SLO
	Attainment    Primary = "slo_attainment" // percentage points, at equal arrivals
)

// Policy is one row of the table: means over seeds.
type Policy struct {
	Name      string   `json:"name"`
	Sustained Interval `json:"sustained_rps"`
	Knee      Knee     `json:"knee"`
	Attained  Value    `json:"slo_attainment"` // share, at the rate of the figures below
	Rate      Value    `json:"rate_rps"`       // offered, at which the figures below were taken
	TTFT90    Value    `json:"ttft_p90_seconds"`
	ITL       Value    `json:"itl_mean_seconds"`
	Cached    Value    `json:"cached_ratio"` // of prompt tokens
	LoadCV    Value    `json:"load_cv"`      // of requests per engine
	// Tuning says where the weights come from, as "llm-d v0.4 defaults 3/2/2" or "no weights"; empty is
	// written "untuned".
	Tuning string `json:"tuning,omitempty"`
}

// Control is the arm that must lose, always-busiest: if it does not, nothing of the comparison may be read.
type Control struct {
	Policy  string   `json:"policy"`
	Against string   `json:"against"`
	Load    Value    `json:"load"`   // factor on the scenario's rate
	Behind  Interval `json:"behind"` // attainment of Against minus that of the control, percentage points
}

// Knee says how a sustained rate was found.
type Knee struct {
	Searched bool  `json:"searched"`  // rates were swept
	Reached  bool  `json:"reached"`   // a rate below 90 % was among them
	Gap      Value `json:"gap_ratio"` // distance of the two rates around it, in shares of it
}

// Versus is ours minus one other policy.
type Versus struct {
	Other   string     `json:"other"`
	Primary Difference `json:"primary"` // in the unit of the primary metric
	// Others are the other metrics, at equal arrivals. They never head a verdict.
	Others []Effect `json:"others,omitempty"`
}

// Difference is a paired difference.
type Difference struct {
	Interval
	Base  Value   `json:"base"`            // of the other policy, in the same unit; for attainment in percent
	SD    Value   `json:"sd"`              // of the differences by seed or block pair
	Seeds []Value `json:"seeds,omitempty"` // the differences themselves, one per seed or block pair
	N     int     `json:"n"`               // how many there are
	P     Value   `json:"p_holm"`          // adjusted by Holm over the comparisons of the report; unknown: not adjusted

	Relative *Interval `json:"relative,omitempty"` // share of the base, where that is not the difference over the base
	All      *Interval `json:"all,omitempty"`      // wider, holding for all comparisons of the report at once; nil: this one is alone
}

// relative is the difference in shares of the base: its own interval where that tells the same of 0
// as the difference does, which may fail where it was estimated in another way (a mean of ratios).
func (d *Difference) relative() Interval {
	if r := d.Relative; r != nil && r.Known() && (r.Mean > 0) == (d.Mean > 0) && r.side() == d.side() {
		return *r
	}
	return d.over(d.Base)
}

// Metric names a metric beside the primary one.
type Metric string

// The metrics beside the primary one, and their units.
const (
	TTFT90   Metric = "ttft_p90" // seconds
	TTFT99   Metric = "ttft_p99" // seconds
	ITLMean  Metric = "itl_mean" // seconds
	E2EMean  Metric = "e2e_mean" // seconds
	Errors   Metric = "errors"   // share of requests not answered to the end
	Fairness Metric = "fairness" // Jain's index, 0 to 1: more is better
	Cached   Metric = "cached"   // share of prompt tokens: more is better
	Goodput  Metric = "goodput"  // requests/s: more is better
)

// Effect is the difference in one metric.
type Effect struct {
	Metric Metric `json:"metric"`
	Difference
}

// Curve is goodput against offered rate of one policy, by ascending rate.
type Curve struct {
	Policy string `json:"policy"`
	Points []Rate `json:"points"`
}

// Rate is one point of a curve.
type Rate struct {
	Offered Value `json:"offered_rps"`
	Goodput Value `json:"goodput_rps"` // within SLO
}

// Slice is the difference on a part of the traffic.
type Slice struct {
	By    string `json:"by"`   // scenario, class, prompt length, cached share, model, hour
	Name  string `json:"name"` // of the part
	Other string `json:"other"`
	Difference
	Requests int `json:"requests"` // in it, of both; few are not split out
}

// Captured is how much of what is possible each policy gained: (policy - baseline)/(reference - baseline)
// in SLO attainment.
type Captured struct {
	Baseline  string `json:"baseline"`  // whose share is 0
	Reference string `json:"reference"` // whose share is 1
	Possible  Value  `json:"possible"`  // percentage points between them: below 5 no share is shown
	Load      Value  `json:"load"`      // factor on the scenario's rate
	Bars      []Bar  `json:"bars"`
}

// Bar is one captured share.
type Bar struct {
	Name     string   `json:"name"`
	Share    Interval `json:"share"`              // 0 to 1, may lie outside
	Foresees bool     `json:"foresees,omitempty"` // it knows what no policy can: a reference
}

// Reliability is what share of requests was at or under each foretold quantile.
type Reliability struct {
	Policy string        `json:"policy"`
	Load   Value         `json:"load"` // factor on the scenario's rate
	Seed   uint64        `json:"seed"`
	Lived  Value         `json:"lived_p90_ratio"` // share of all requests at or under their foretold p90, as they came
	Curves []Calibration `json:"curves"`
}

// Calibration is one curve of it.
type Calibration struct {
	Target    string  `json:"target"` // TTFT or ITL
	Random    bool    `json:"random"` // on endpoints drawn at random; else on those chosen
	Quantiles []Value `json:"quantiles"`
	Observed  []Value `json:"observed"` // shares at or under them
	N         int     `json:"n"`        // requests
}

// Timeline is what happened during one run.
type Timeline struct {
	Policy  string   `json:"policy"`
	Load    Value    `json:"load"` // factor on the scenario's rate
	Seed    uint64   `json:"seed"`
	Times   []Value  `json:"times_seconds"` // since the run began
	Engines []Series `json:"engines"`       // requests in flight, by endpoint
	Weights []Series `json:"weights,omitempty"`
	Marks   []Mark   `json:"marks,omitempty"`
}

// Series has one value per time of its timeline.
type Series struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Mark is something that happened at an instant.
type Mark struct {
	At   Value  `json:"at_seconds"`
	Text string `json:"text"`
}

// Method says how it was done.
type Method struct {
	Command  string   `json:"command"` // exact, to be run again
	Version  string   `json:"version"`
	Hashes   []Hash   `json:"hashes,omitempty"` // of scenario, workload, engine table
	Seeds    []uint64 `json:"seeds,omitempty"`
	Notes    []string `json:"notes,omitempty"` // further sentences: how the best was chosen, how knees were found
	TTFTOff  Value    `json:"simulator_ttft_error_ratio"`
	ITLOff   Value    `json:"simulator_itl_error_ratio"`
	RunHours Value    `json:"hours_per_seed"` // what one more seed costs, or one more block pair; unknown: not said
}

// Hash is the SHA-256 of an input.
type Hash struct {
	Of     string `json:"of"`
	SHA256 string `json:"sha256"`
}

// Measured errors of the simulator against real engines (docs/engine.md), for [Method].
const (
	SimulatorTTFT Value = 0.062
	SimulatorITL  Value = 0.036
)
