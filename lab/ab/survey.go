package ab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
)

const (
	mostArms    = 7                // bits of a second, one is for records without an arm
	noArm       = uint8(1) << 7    // that bit
	mostHours   = 62 * 24          // of one log
	mostSampled = 1 << 18          // sessions and ids kept
	probe       = "probe"          // the policy of decisions that try an endpoint out
	mostEngines = 1 << 14          // endpoints by instance
	leastWash   = 60 * time.Second // of a switchback
)

// Survey finds out from a log what the experiment was. The zero value is empty.
type Survey struct {
	Records int // all that were added
	Probes  int // of these, decisions that tried an endpoint out
	NoArm   int // of these, without an arm: washout, or no experiment

	arms     []surveyed
	hours    map[int64]*[3600]uint8 // arms met in each second
	sessions map[uint64]uint8       // arms met by a sample of sessions
	repeats  int                    // records of sampled sessions met before
	sessed   int                    // records with a session
	ids      map[string]int         // file of a sample of the decisions
	engines  map[string]*engineUse
	first    time.Time
	last     time.Time
}

// surveyed is an arm as the log shows it.
type surveyed struct {
	name     string
	records  int
	policies map[string]int
}

// engineUse is what went into an endpoint's cache.
type engineUse struct {
	capacity float64 // tokens
	tokens   float64 // computed anew, or generated
}

// Add takes a record of file number file. Errors name the column that makes the log unusable.
func (s *Survey) Add(file int, o *features.Observation) error {
	s.Records++
	if err := s.twice(file, o.ID); err != nil {
		return err
	}
	if s.first.IsZero() || o.At.Before(s.first) {
		s.first = o.At
	}
	if o.At.After(s.last) {
		s.last = o.At
	}
	s.use(o)
	if o.Policy == probe {
		s.Probes++
		return nil
	}
	bit := noArm
	if o.Arm == "" {
		s.NoArm++
	} else {
		i, err := s.arm(o.Arm)
		if err != nil {
			return err
		}
		s.arms[i].records++
		if _, ok := s.arms[i].policies[o.Policy]; ok || len(s.arms[i].policies) < 16 {
			s.arms[i].policies[o.Policy]++
		}
		bit = 1 << i
		s.session(o.Session, bit)
	}
	hour, second := floor(o.At.Unix(), 3600), o.At.Unix()-floor(o.At.Unix(), 3600)*3600
	h := s.hours[hour]
	if h == nil {
		if len(s.hours) == mostHours {
			return fmt.Errorf("at: the records are of more than %d different hours; export less of them, with presage-train export --since", mostHours)
		}
		if s.hours == nil {
			s.hours = make(map[int64]*[3600]uint8)
		}
		h = new([3600]uint8)
		s.hours[hour] = h
	}
	h[second] |= bit
	return nil
}

// twice refuses a log that is given a second time, by a sample of its decisions.
func (s *Survey) twice(file int, id string) error {
	if id == "" || hashText(id)%32 != 0 {
		return nil
	}
	if before, ok := s.ids[id]; ok && before != file {
		return &repeatError{id: id, before: before}
	}
	if s.ids == nil {
		s.ids = make(map[string]int)
	}
	if len(s.ids) < mostSampled {
		s.ids[id] = file
	}
	return nil
}

// repeatError says that two files hold the same decision.
type repeatError struct {
	id     string
	before int // file
}

func (e *repeatError) Error() string { return "id: " + e.id + ": in another file too" }

func (s *Survey) arm(name string) (int, error) {
	for i := range s.arms {
		if s.arms[i].name == name {
			return i, nil
		}
	}
	if len(s.arms) == mostArms {
		return 0, fmt.Errorf("arm: %.40q is the %dth; at most %d can be compared", name, mostArms+1, mostArms)
	}
	s.arms = append(s.arms, surveyed{name: name, policies: map[string]int{}})
	return len(s.arms) - 1, nil
}

func (s *Survey) session(id uint64, bit uint8) {
	if id == 0 {
		return
	}
	s.sessed++
	if id%4 != 0 {
		return
	}
	if s.sessions == nil {
		s.sessions = make(map[uint64]uint8)
	}
	if met, ok := s.sessions[id]; ok {
		s.repeats++
		s.sessions[id] = met | bit
	} else if len(s.sessions) < mostSampled {
		s.sessions[id] = bit
	}
}

// use notes what the request put into its endpoint's cache.
func (s *Survey) use(o *features.Observation) {
	capacity := float64(o.X[features.KVTokens])
	if o.Schema == "" || !(capacity > 0) || math.IsInf(capacity, 0) {
		return
	}
	e := s.engines[o.Endpoint]
	if e == nil {
		if len(s.engines) == mostEngines {
			return
		}
		if s.engines == nil {
			s.engines = make(map[string]*engineUse)
		}
		e = new(engineUse)
		s.engines[o.Endpoint] = e
	}
	e.capacity = capacity
	if o.CachedTokens >= 0 {
		e.tokens += float64(max(0, o.PromptTokens-o.CachedTokens))
	} else {
		e.tokens += max(0, o.X.At(features.Uncached))
	}
	e.tokens += float64(max(0, o.OutputTokens))
}

// turnover is how long it takes to fill a cache anew: the median over endpoints of the capacity over the
// tokens that came in per second. 0: not known.
func (s *Survey) turnover() time.Duration {
	span := s.last.Sub(s.first).Seconds()
	var all []float64
	for _, e := range s.engines {
		if e.tokens > 0 && span > 0 {
			all = append(all, e.capacity/(e.tokens/span))
		}
	}
	if len(all) == 0 {
		return 0
	}
	return time.Duration(min(stat.Median(all), 1e6) * float64(time.Second)).Round(time.Second)
}

// sticky reports whether sessions keep their arm.
func (s *Survey) sticky() bool {
	mixed := 0
	for _, met := range s.sessions {
		if met&(met-1) != 0 {
			mixed++
		}
	}
	return s.repeats >= 20 && float64(mixed) <= 0.01*float64(len(s.sessions))
}

// seconds calls each with every second that has records, in order.
func (s *Survey) seconds(each func(second int64, met uint8)) {
	for _, hour := range slices.Sorted(maps.Keys(s.hours)) {
		for i, met := range s.hours[hour] {
			if met != 0 {
				each(hour*3600+int64(i), met)
			}
		}
	}
}

// floor is the division that rounds down for negative numbers too.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
