package compare

import (
	"encoding/json"
	"maps"
	"math"
	"time"
)

// Outcome is what a comparison of policies on one scenario found: everything that a table, a JSON
// object or a report shows. Its own [Section] is the headline load: 1 if it was played, else the
// highest one up to 1, else the lowest.
type Outcome struct {
	Scenario  string        `json:"scenario"`
	About     string        `json:"about"`
	Expects   string        `json:"expects"` // what should happen, and why
	Endpoints int           `json:"endpoints"`
	Duration  time.Duration `json:"-"` // of a run, the warm-up included
	Warmup    time.Duration `json:"-"`

	Seeds     int      `json:"seeds"`       // seeds of which every run was made; only they count
	Asked     int      `json:"seeds_asked"` // seeds that were asked for
	SeedList  []uint64 `json:"seed_list"`   // those that count
	Order     []string `json:"order"`       // policies as they were asked for; the first is held against the others
	Reference string   `json:"reference"`   // policy that changed decisions are counted against
	Done      int      `json:"runs"`        // runs made
	Planned   int      `json:"runs_planned"`
	Partial   bool     `json:"partial"` // it was stopped before all seeds were done

	Section
	Sweep []Section        `json:"sweep"`           // every load that was asked for, rising
	Knees map[string]*Knee `json:"knees,omitempty"` // by policy; nil: none were looked for
	// NoKnee says why there are none although they were asked for; empty: there are.
	NoKnee string `json:"no_knee,omitempty"`
	// Primary compares the first policy with each other one by what the verdict goes by: the knee
	// if there are knees, else attainment at the headline load.
	Primary []Comparison `json:"primary"`
	Control *Control     `json:"control,omitempty"`
	Void    string       `json:"void,omitempty"` // why nothing of this may be read; empty: it may
	Notes   []string     `json:"notes,omitempty"`
}

// Section is one load.
type Section struct {
	Load     float64              `json:"load"`        // multiple of the scenario's rate
	Offered  float64              `json:"offered_rps"` // requests per second, mean over seeds and policies
	Policies map[string]*Standing `json:"policies"`
	Paired   []Comparison         `json:"paired"`             // the first policy minus each other one, by metric
	ByClass  []ByClass            `json:"by_class,omitempty"` // the same of attainment, by SLO class; nil for one class
}

// Standing is what one policy was at one load: means over seeds, and single seeds for who draws them.
type Standing struct {
	Policy string
	Mean   map[string]float64   // by [Measure].Name; what a scenario has not, as fairness of one class, is missing
	CI95   map[string]Interval  // of the mean, Student's t over seeds; missing for fewer than two, and for p99 with fewer than ten
	Values map[string][]float64 // of each seed, in order of Outcome.SeedList; NaN where a run has it not
	// Classes are by SLO class, attainment as a share; nil for one class.
	Classes map[string]Class
	// Unequal says that on some seed another number of requests was answered than by the first
	// policy: then their percentiles are those of different requests.
	Unequal bool
	Knee    *Knee // nil: none was looked for
}

// MarshalJSON puts the metrics beside each other, as {"slo_attainment": …, "ci95": {…}}.
func (s *Standing) MarshalJSON() ([]byte, error) {
	ci95 := make(map[string]Interval, len(s.CI95)+1)
	maps.Copy(ci95, s.CI95)
	flat := map[string]any{"ci95": ci95}
	for name, v := range s.Mean {
		flat[name] = v
	}
	if s.Classes != nil {
		flat["classes"] = s.Classes
	}
	if s.Unequal {
		flat["percentiles_of_other_requests"] = true
	}
	if s.Knee != nil {
		flat["knee"], ci95["knee"] = s.Knee.Load, s.Knee.CI95
	}
	return json.Marshal(flat)
}

// Interval is a confidence interval; NaN where there is none, which is null in JSON.
type Interval [2]float64

// MarshalJSON is [low, high] or null.
func (i Interval) MarshalJSON() ([]byte, error) {
	for _, v := range i {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return []byte("null"), nil
		}
	}
	return json.Marshal([2]float64(i))
}

// Excludes reports whether the interval lies on one side of v.
func (i Interval) Excludes(v float64) bool { return i[0] > v || i[1] < v }

// Comparison is policy A minus policy B, paired by seed.
type Comparison struct {
	A      string   `json:"a"`
	B      string   `json:"b"`
	Metric string   `json:"metric"` // [Measure].Name, or knee
	Load   float64  `json:"load,omitempty"`
	Diff   float64  `json:"diff"` // in the metric's unit
	CI95   Interval `json:"ci95"` // of this comparison alone
	CIAll  Interval `json:"ci95_all"`
	// Relative is the difference as a share of B's mean; of knees the ratio of A to B, less one, from
	// the mean of the logarithms.
	Relative     float64   `json:"relative"`
	RelativeCI95 Interval  `json:"relative_ci95"`
	P            float64   `json:"p"`      // two-sided; 1 for fewer than two seeds
	Holm         float64   `json:"p_holm"` // adjusted for all comparisons of the same metric
	Seeds        int       `json:"seeds"`
	Wins         int       `json:"wins"` // seeds on which A is better
	Losses       int       `json:"losses"`
	SD           float64   `json:"sd"`               // of the differences, not of their mean; 0 for fewer than two seeds
	Needed       int       `json:"needed,omitempty"` // seeds in all that would settle Diff at 80 % power, where it is not settled
	Values       []float64 `json:"values"`           // difference of each seed
	Verdict      Verdict   `json:"verdict"`

	base float64 // mean of B, without its sign
	good int     // as of Measure
}

// Verdict is what a comparison says of A.
type Verdict string

// The verdicts.
const (
	Better     Verdict = "better"
	Worse      Verdict = "worse"
	Same       Verdict = "same"           // the interval lies within 1 %
	Undecided  Verdict = "undecided"      // the interval includes 0; see Comparison.Needed
	TooFew     Verdict = "too few seeds"  // fewer than MinSeeds
	VoidResult Verdict = "void"           // the control did not lose
	NoData     Verdict = "nothing to see" // no seed has the metric of both
)

// MinSeeds is the number of seeds below which there is no verdict, and SeedsForP99 the number below
// which there is no interval of a p99.
const (
	MinSeeds    = 5
	SeedsForP99 = 10
)

// Control is the arm that has to lose: always-busiest at the highest load.
type Control struct {
	Policy     string   `json:"policy"`
	Load       float64  `json:"load"`
	Against    string   `json:"against"` // the policy that attained most there
	Attainment float64  `json:"slo_attainment"`
	Diff       float64  `json:"diff"` // Against minus control, as a share
	CI95       Interval `json:"ci95"`
	Lost       bool     `json:"lost"`
}

// Knee is the sustained load of a policy: where its attainment, as a falling function of the load at
// a fixed run length, first crosses 90 %. It is found seed by seed.
type Knee struct {
	Policy  string     `json:"policy"`
	Load    float64    `json:"load"`        // mean over seeds, a multiple of the scenario's rate
	CI95    Interval   `json:"ci95"`        // over seeds
	Rate    float64    `json:"offered_rps"` // requests per second offered at that load
	PerSeed []SeedKnee `json:"per_seed"`    // in order of the seeds
	Zero    int        `json:"zero"`        // seeds on which less than 90 % was attained at the lowest load
	// Unreached is the number of seeds on which the highest load was still sustained: Load is then a
	// lower bound. "Sustained rate not reached: raise the swept rates."
	Unreached int  `json:"unreached"`
	Coarse    bool `json:"coarse"` // on some seed, the loads around the knee are more than 10 % of it apart
}

// SeedKnee is the knee on one seed.
type SeedKnee struct {
	Seed      uint64  `json:"seed"`
	Load      float64 `json:"load"` // 0: below 90 % at the lowest load
	Gap       float64 `json:"gap"`  // between the loads around it, as a share of it
	Unreached bool    `json:"unreached,omitempty"`
	Points    []Point `json:"points"` // what was played, by load
}

// Point is one run of a sweep.
type Point struct {
	Load       float64 `json:"load"`
	Offered    float64 `json:"offered_rps"`
	Attainment float64 `json:"slo_attainment"` // share
	Goodput    float64 `json:"goodput_rps"`
}
