package evaluate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// File is what the evaluation of one file, or of one run in it, says.
type File struct {
	File    string            `json:"file"`
	Run     string            `json:"run,omitempty"`
	Format  string            `json:"format"`
	Rows    int               `json:"rows"`
	Kept    int               `json:"kept"`
	Dropped map[string]int    `json:"dropped"`
	Targets map[string]Score  `json:"targets"`
	Strata  map[string]Strata `json:"strata"`
	Rivals  map[string]Rivals `json:"rivals"`
}

// Strata are scores of parts of the forecasts of one target, by name of the part.
type Strata map[string]Score

// Rivals are scores of others for one target, by name.
type Rivals map[string]Score

var targetNames = [2]string{"ttft", "itl"}

// Skip is the number of labelled requests of each target that are not counted: the first 500, or
// the first third of a short run.
func Skip(n int) int {
	if n < 1500 {
		return n / 3
	}
	return 500
}

// Path evaluates one file with a fresh learner.
func Path(path string, o predictor.Options) (*File, error) {
	rows, report, err := datasets.Load[datasets.Row](path)
	if err != nil {
		return nil, err
	}
	f := &File{File: path, Format: string(report.Format), Rows: report.Rows, Dropped: map[string]int{}}
	for reason, n := range report.Dropped {
		f.Dropped[reason] = n
	}
	kept := rows[:0]
	for i := range rows {
		if why := unfit(&rows[i]); why != "" {
			f.Dropped[why]++
			continue
		}
		kept = append(kept, rows[i])
	}
	if f.Kept = len(kept); f.Kept == 0 {
		return nil, fmt.Errorf("%s: no row of %d has a TTFT or ITL of a completed streamed answer", path, f.Rows)
	}
	return f, f.judge(kept, o)
}

// unfit says why a row cannot be replayed.
func unfit(r *datasets.Row) string {
	switch {
	case r.Outcome != datasets.Completed:
		return "not completed"
	case r.Prompt <= 0:
		return "no prompt length"
	case !(r.TTFT > 0) && !(r.ITL > 0):
		return "no label"
	}
	return ""
}

func (f *File) judge(rows []datasets.Row, o predictor.Options) error {
	c := withoutClock(rows)
	if datasets.Format(f.Format) != datasets.EPP {
		var err error
		if c, err = withClock(rows); err != nil {
			return fmt.Errorf("%s: %w", f.File, err)
		}
	}
	pairs := c.run(o)
	f.Targets, f.Strata, f.Rivals = map[string]Score{}, map[string]Strata{}, map[string]Rivals{}
	for t, name := range targetNames {
		skip := Skip(len(pairs[t]))
		counted := pairs[t][skip:]
		if len(counted) == 0 {
			continue
		}
		s := score(counted)
		s.Skipped = skip
		f.Targets[name] = s
		f.Strata[name] = strata(counted, pairs[t][:skip])
		f.Rivals[name] = rivals(counted)
	}
	return nil
}

// run makes every forecast in order, learning what has become known in between.
func (c *course) run(o predictor.Options) (pairs [2][]pair) {
	l := predictor.NewLearner(o)
	frozen := l.Freeze()
	var learned [2]int
	for i := range c.examples {
		ex := &c.examples[i]
		fresh := false
		for t := range learned {
			for ; learned[t] < ex.known[t]; learned[t]++ {
				teach(l, &c.examples[c.order[t][learned[t]]].obs, t)
				fresh = true
			}
		}
		if fresh {
			frozen = l.Freeze()
		}
		ob := &ex.obs
		ob.Said = frozen.Judge(&ob.X, &ob.Where, &ob.Fore)
		for t, y := range [2]time.Duration{ob.TTFT, ob.ITL} {
			if y <= 0 {
				continue
			}
			p := pair{p: ob.Fore.TTFT, said: ob.Said[t], actual: y.Seconds(), inflight: ex.inflight,
				hit: ob.HitTokens > 0, pending: ob.X[features.Pending] > 0, order: len(pairs[t])}
			if t == 1 {
				p.p = ob.Fore.ITL
			}
			pairs[t] = append(pairs[t], p)
		}
	}
	return pairs
}

// teach gives the learner one label and lets it fit trees when these are due.
func teach(l *predictor.Learner, o *features.Observation, t int) {
	if t == 0 {
		l.First(o)
	} else {
		l.End(o)
	}
	for fit := l.Due(time.Time{}); fit != nil; fit = l.Due(time.Time{}) {
		fit.Run()
		_ = l.Adopt(fit) // a failed training leaves the trees as they were
	}
}

// strata splits the forecasts: by in-flight decile, hit or miss, idle or queued, and the cold start.
func strata(pairs, cold []pair) Strata {
	s := Strata{}
	by := slices.Clone(pairs)
	slices.SortStableFunc(by, func(a, b pair) int { return cmp.Compare(a.inflight, b.inflight) })
	for d := range 10 {
		if part := by[d*len(by)/10 : (d+1)*len(by)/10]; len(part) > 0 {
			s[fmt.Sprintf("inflight decile %d", d+1)] = score(part)
		}
	}
	part := func(name string, in func(*pair) bool) {
		var some []pair
		for i := range pairs {
			if in(&pairs[i]) {
				some = append(some, pairs[i])
			}
		}
		if len(some) > 0 {
			s[name] = score(some)
		}
	}
	part("hit", func(p *pair) bool { return p.hit })
	part("miss", func(p *pair) bool { return !p.hit })
	part("idle", func(p *pair) bool { return p.inflight == 0 })
	part("busy", func(p *pair) bool { return p.inflight > 0 && !p.pending })
	part("queued", func(p *pair) bool { return p.pending })
	if n := min(len(cold), 100); n > 0 {
		s["first 100"] = score(cold[:n])
	}
	return s
}

// rivals are the members of the blend, each by itself.
func rivals(pairs []pair) Rivals {
	r := Rivals{}
	for m, name := range predictor.MemberNames {
		r[name] = rival(pairs, func(p *pair) float64 { return expOf(p.said[m]) })
	}
	return r
}
