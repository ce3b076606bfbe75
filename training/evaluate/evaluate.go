package evaluate

import (
	"context"
	"fmt"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/predictor"
)

// File is what the evaluation of one part of a file says. Maps are keyed by target, "ttft" and
// "itl"; a target without labels is absent. No figure in it is NaN or infinite.
type File struct {
	File    string             `json:"file"`
	Unit    string             `json:"unit,omitempty"`
	Format  string             `json:"format"`
	Rows    int                `json:"rows"`
	Kept    int                `json:"kept"`
	Dropped map[string]int     `json:"dropped"`
	Targets map[string]Score   `json:"targets"`
	Strata  map[string]Strata  `json:"strata"`
	Windows map[string]Windows `json:"windows"` // of files with a clock
	Rivals  map[string]Rivals  `json:"rivals"`
	Against map[string]Against `json:"against"`
	Alarms  map[string]int     `json:"alarms"` // of the drift detectors
}

// TargetNames are the names of the targets, in the order of [predictor.TTFT] and [predictor.ITL].
var TargetNames = [2]string{"ttft", "itl"}

// Options say how to evaluate. The zero value will do.
type Options struct {
	Predictor predictor.Options
	Foils     bool // also judge the models of package baseline, refitted as labels come
}

// Skip is the number of labelled requests of each target that are not counted: the first 500, or
// the first third of a short run.
func Skip(n int) int {
	if n < 1500 {
		return n / 3
	}
	return 500
}

// Judge replays the part with a fresh learner. The part is not changed.
func (p *Part) Judge(ctx context.Context, o Options) (*File, error) {
	c, err := p.course()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	out, err := c.run(ctx, o.Predictor)
	if err != nil {
		return nil, err
	}
	f := &File{
		File: p.File, Unit: p.Unit, Format: string(p.Format), Rows: p.Read, Kept: p.kept, Dropped: p.Dropped,
		Targets: map[string]Score{}, Strata: map[string]Strata{}, Windows: map[string]Windows{},
		Rivals: map[string]Rivals{}, Against: map[string]Against{}, Alarms: map[string]int{},
	}
	for t := range out {
		if err := f.judge(ctx, TargetNames[t], &out[t], o.Foils); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// course is the part as a sequence of decisions.
func (p *Part) course() (*course, error) {
	if p.Format == datasets.EPP {
		return withoutClock(p.runs[0]), nil
	}
	all, held := new(course), newPrefixes()
	for n, rows := range p.runs {
		c, err := withClock(append([]datasets.Row(nil), rows...), held)
		if err != nil {
			return nil, err
		}
		for i := range c.examples {
			c.examples[i].run = n
		}
		all.follow(c)
	}
	return all, nil
}

func (f *File) judge(ctx context.Context, name string, fc *forecasts, foils bool) error {
	skip := Skip(len(fc.pairs))
	counted := fc.pairs[skip:]
	if len(counted) == 0 {
		return nil
	}
	s := score(counted)
	s.Skipped = skip
	f.Targets[name] = s
	f.Alarms[name] = fc.markDrift()
	f.Strata[name] = strata(counted, fc.pairs[:skip])
	if w := windows(counted); w.N > 0 {
		f.Windows[name] = w
	}
	f.Rivals[name] = members(counted)
	f.Against[name] = against(counted)
	if !foils {
		return nil
	}
	return fc.foils(ctx, skip, f.Rivals[name])
}
