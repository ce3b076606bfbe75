package report

import "time"

// Live is what a comparison of live traffic adds. In it, Comparison.Policies are the arms, the primary
// metric is [Attainment] and Difference.Seeds are block pairs.
type Live struct {
	Unit     string    `json:"unit"` // that was assigned: block, session or request
	Calendar []Block   `json:"calendar,omitempty"`
	Pairs    int       `json:"pairs"` // of blocks, washout left out
	Arrivals []Arrival `json:"arrivals,omitempty"`
	// DesignEffect is how many times the variance is what independent requests would give; unknown: not measured.
	DesignEffect Value      `json:"design_effect"`
	CarryOver    *CarryOver `json:"carry_over,omitempty"`
	AA           *AA        `json:"aa,omitempty"`
	// AlwaysValid says that the intervals are confidence sequences: they may be read at any time.
	AlwaysValid bool   `json:"always_valid"`
	Trips       []Trip `json:"guardrail_trips,omitempty"`
	// Unsound are further reasons that forbid a verdict, each a clause: what the analysis found in the log.
	Unsound   []string    `json:"unsound,omitempty"`
	OffPolicy []OffPolicy `json:"off_policy,omitempty"`
}

// Block is one span of time given to one arm.
type Block struct {
	Begin    time.Time     `json:"begin"`
	Length   time.Duration `json:"length_ns"`
	Washout  time.Duration `json:"washout_ns"` // at its start, not counted
	Arm      string        `json:"arm"`
	Requests int           `json:"requests"`
	Met      int           `json:"slo_met"`
}

// Arrival is the traffic that an arm got.
type Arrival struct {
	Arm      string `json:"arm"`
	Requests int    `json:"requests"`
	Rate     Value  `json:"rate_rps"`
}

// CarryOver compares the arms' difference in the first halves of blocks with that in the second: what
// one arm leaves behind in caches and queues shows there.
type CarryOver struct {
	First  Interval `json:"first_half"` // percentage points
	Second Interval `json:"second_half"`
	P      Value    `json:"p"` // that they are equal
}

// AA is the check that arms of equal policies do not differ.
type AA struct {
	P    Value `json:"p"`
	N    int   `json:"n"`           // pairs
	Wide Value `json:"wide_points"` // half width of its interval, percentage points
}

// Trip is one time a guardrail stopped the experiment.
type Trip struct {
	At    time.Time `json:"at"`
	Name  string    `json:"name"`
	Value Value     `json:"value"` // unknown where a log shows no more than that it ended
	Limit Value     `json:"limit"`
}

// OffPolicy estimates one decision of a policy that did not route, from an exploring arm.
type OffPolicy struct {
	Policy    string   `json:"policy"`
	Method    string   `json:"method"`       // SNIPS or doubly robust
	TTFT      Interval `json:"ttft_seconds"` // mean
	ESS       Value    `json:"ess_ratio"`    // effective sample size, in shares of the sample
	MaxWeight Value    `json:"max_weight"`
	N         int      `json:"n"`
}
