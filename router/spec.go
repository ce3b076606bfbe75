package router

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// ProfileSpec is a profile as a configuration file writes it: plain values, where a nil pointer or
// nil list means unset, which is not zero.
type ProfileSpec struct {
	Filters   []FilterSpec        // nil: the stale filter; empty: none
	Scorers   map[string]*float64 // weight per name of [ScorerNames]; nil: the scorer's own default
	Picker    string              // of [PickerNames]; empty: max
	Epsilon   *float64            // exploratory share of epsilon-greedy; nil: [DefaultEpsilon]
	Fallbacks int                 // further endpoints named in a decision
	MaxAge    time.Duration       // of an engine's page; 0: [DefaultMaxAge]
	Probe     time.Duration       // see [DefaultProbe], which 0 means; negative: never probe
}

// FilterSpec is one filter of a profile.
type FilterSpec struct {
	Name string   // of [FilterNames]
	Max  *float64 // limit of the queue and kv filters; nil: the published one
}

// scorer is how a scorer is made, and its weight where none is given.
type scorer struct {
	name   string
	weight float64
	make   func(maxAge time.Duration) Scorer
}

// scorers lists them in the order in which explanations show them. The default weights of prefix,
// queue and kv are those of llm-d-router's "3,2,2".
var scorers = []scorer{
	{"prefix", 3, func(time.Duration) Scorer { return PrefixScorer{} }},
	{"lora", 1, func(a time.Duration) Scorer { return LoRAScorer{MaxAge: a} }},
	{"session", 1, func(time.Duration) Scorer { return SessionScorer{} }},
	{"queue", 2, func(a time.Duration) Scorer { return QueueScorer{MaxAge: a} }},
	{"running", 1, func(a time.Duration) Scorer { return RunningScorer{MaxAge: a} }},
	{"requests", 1, func(time.Duration) Scorer { return RequestsScorer{MaxBusyScore: 1} }},
	{"tokens", 1, func(time.Duration) Scorer { return TokensScorer{Capacity: TokenLoadCapacity} }},
	{"kv", 2, func(a time.Duration) Scorer { return KVScorer{MaxAge: a} }},
}

// ScorerNames returns the names a profile may give weights to.
func ScorerNames() []string {
	names := make([]string, len(scorers))
	for i, s := range scorers {
		names[i] = s.name
	}
	return names
}

// FilterNames returns the names of the filters a profile may list.
func FilterNames() []string { return []string{"stale", "adapter", "queue", "kv"} }

// PickerNames returns the names of the pickers a profile may choose.
func PickerNames() []string { return []string{"max", "weighted-random", "epsilon-greedy"} }

// NewProfile builds a profile. The error names the field and the value that are wrong, below the
// profile's own place in the configuration.
func NewProfile(name string, spec ProfileSpec) (*Profile, error) {
	p := &Profile{name: name, fallbacks: spec.Fallbacks, probe: prober{after: spec.Probe}}
	if spec.Probe == 0 {
		p.probe.after = DefaultProbe
	}
	switch {
	case spec.Fallbacks < 0:
		return nil, fmt.Errorf("fallbacks: %d is negative; 0 means none", spec.Fallbacks)
	case spec.MaxAge < 0:
		return nil, fmt.Errorf("max_age: %s is negative; leave it out for %s", spec.MaxAge, DefaultMaxAge)
	}
	if err := p.addScorers(spec); err != nil {
		return nil, err
	}
	if err := p.addFilters(spec); err != nil {
		return nil, err
	}
	if err := p.addPicker(spec); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Profile) addScorers(spec ProfileSpec) error {
	if len(spec.Scorers) == 0 {
		return fmt.Errorf("scorers: none given; give a weight to one or more of %s", strings.Join(ScorerNames(), ", "))
	}
	for _, s := range scorers {
		w, ok := spec.Scorers[s.name]
		if !ok {
			continue
		}
		weight := s.weight
		if w != nil {
			weight = *w
		}
		p.scorers = append(p.scorers, s.make(spec.MaxAge))
		p.weights = append(p.weights, weight)
		p.terms = append(p.terms, s.name)
	}
	if len(p.scorers) < len(spec.Scorers) {
		for _, name := range sorted(spec.Scorers) {
			if !slices.Contains(ScorerNames(), name) {
				return fmt.Errorf("scorers.%s: %s", name, unknown(name, ScorerNames()))
			}
		}
	}
	if err := checkWeights(p.terms, p.weights); err != nil {
		return err
	}
	if sum(p.weights) == 0 {
		p.warnings = append(p.warnings, "scorers: every weight is 0: requests spread uniformly at random")
	}
	tame(p.weights)
	return nil
}

func (p *Profile) addFilters(spec ProfileSpec) error {
	list := spec.Filters
	if list == nil {
		list = []FilterSpec{{Name: "stale"}}
	}
	for i, f := range list {
		if slices.ContainsFunc(list[:i], func(g FilterSpec) bool { return g.Name == f.Name }) {
			return fmt.Errorf("filters[%d]: %s is listed twice; remove one", i, f.Name)
		}
		limit := func(published, most float64) (float64, error) {
			switch {
			case f.Max == nil:
				return published, nil
			case !(*f.Max >= 0 && *f.Max <= most): //nolint:staticcheck // NaN must fail too
				return 0, fmt.Errorf("filters[%d].max: %v is not within 0 and %v; leave it out for %v", i, *f.Max, most, published)
			}
			return *f.Max, nil
		}
		var made Filter
		var err error
		switch f.Name {
		case "queue":
			q := QueueFilter{MaxAge: spec.MaxAge}
			q.Max, err = limit(SaturatedQueue, math.MaxInt32)
			made = q
		case "kv":
			k := KVFilter{MaxAge: spec.MaxAge}
			k.Max, err = limit(SaturatedKV, 1)
			made = k
		case "stale":
			made = FreshFilter{MaxAge: spec.MaxAge}
		case "adapter":
			made = LoRAFilter{MaxAge: spec.MaxAge}
		default:
			return fmt.Errorf("filters[%d]: %s", i, unknown(f.Name, FilterNames()))
		}
		if err == nil && f.Max != nil && (f.Name == "stale" || f.Name == "adapter") {
			err = fmt.Errorf("filters[%d].max: the %s filter has no limit; remove it", i, f.Name)
		}
		if err != nil {
			return err
		}
		p.filters = append(p.filters, made)
	}
	return nil
}

func (p *Profile) addPicker(spec ProfileSpec) error {
	if spec.Epsilon != nil && spec.Picker != "epsilon-greedy" {
		return fmt.Errorf("epsilon: the %s picker draws no exploratory picks; choose epsilon-greedy or remove it", orMax(spec.Picker))
	}
	switch spec.Picker {
	case "", "max":
		p.picker = MaxPicker{}
	case "weighted-random":
		p.picker = WeightedPicker{}
	case "epsilon-greedy":
		eps := DefaultEpsilon
		if spec.Epsilon != nil {
			eps = *spec.Epsilon
		}
		if !(eps >= 0 && eps <= 1) { //nolint:staticcheck // NaN must fail too
			return fmt.Errorf("epsilon: %v is no share; give one within 0 and 1", eps)
		}
		p.picker = EpsilonPicker{Epsilon: eps}
	default:
		return fmt.Errorf("picker: %s", unknown(spec.Picker, PickerNames()))
	}
	return nil
}

func orMax(picker string) string {
	if picker == "" {
		return "max"
	}
	return picker
}

func checkWeights(names []string, w []float64) error {
	if len(w) != len(names) {
		return fmt.Errorf("scorers: %d weights for %d scorers", len(w), len(names))
	}
	for i, v := range w {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return fmt.Errorf("scorers.%s: %v is not finite; 0 switches the scorer off", names[i], v)
		case v < 0:
			return fmt.Errorf("scorers.%s: %v is negative; 0 switches the scorer off", names[i], v)
		}
	}
	return nil
}

// maxWeights bounds the sum of weights: beyond it all are scaled down together, which changes no
// ranking and keeps sums and the explanation's float32 finite.
const maxWeights = 1e6

func tame(w []float64) {
	largest := slices.Max(w)
	if largest <= maxWeights/float64(len(w)) {
		return
	}
	for i := range w {
		w[i] = w[i] / largest * (maxWeights / float64(len(w)))
	}
}

func sum(w []float64) float64 {
	s := 0.0
	for _, v := range w {
		s += v
	}
	return s
}
