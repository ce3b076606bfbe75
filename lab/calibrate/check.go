package calibrate

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/engine"
)

// Check is one comparison of simulation and measurement.
type Check struct {
	Name   string  `json:"name"`
	Rows   int     `json:"rows"`            // of the file, which the error is about
	Fitted string  `json:"fitted"`          // rows whose measurements a fit saw
	Error  float64 `json:"error"`           // as a share, unless the name says something else
	Limit  float64 `json:"limit,omitempty"` // 0: shown, not judged
	OK     bool    `json:"ok"`              // within the limit, or not judged
}

// judged returns the check with OK set.
func judged(c Check) Check {
	if math.IsNaN(c.Error) || math.IsInf(c.Error, 0) {
		c.Error, c.OK = math.MaxFloat32, false // JSON has no other way to say that there is no figure
		return c
	}
	c.OK = c.Limit == 0 || c.Error <= c.Limit
	return c
}

// nothing says that no row was used for fitting.
const nothing = "none"

// Report is what validation found.
type Report struct {
	Checks []Check `json:"checks"`
	Chats  []Chat  `json:"chats,omitempty"` // the curves of the aibrix benchmark
}

// Missed are the checks outside their limits.
func (r *Report) Missed() int {
	n := 0
	for _, c := range r.Checks {
		if !c.OK {
			n++
		}
	}
	return n
}

// Options are those of [Validate].
type Options struct {
	Quick bool // without the orderings of policies, which take most of the time
	// Progress is told before each group of checks; nil: nobody.
	Progress func(group string)
}

// Validate compares the simulated engines and fleets with the measurements in a folder. The error is
// that of a file that cannot be read; a check that is missed is none.
func Validate(ctx context.Context, dir string, o Options) (*Report, error) {
	table, err := engine.Builtin()
	if err != nil {
		return nil, err
	}
	v := &validation{dir: dir, table: table}
	groups := []struct {
		name string
		run  func(context.Context) error
	}{
		{"step times", v.passes}, {"operating points", v.silicon}, {"a cold prompt", v.cold}, {"KV capacity", v.capacity},
		{"overloaded engines", v.servingsim}, {"sweeps", v.sweeps},
		{"order of policies", v.orderings}, {"chat sessions", v.chats},
	}
	if o.Quick {
		groups = groups[:len(groups)-2]
	}
	for _, g := range groups {
		if o.Progress != nil {
			o.Progress(g.name)
		}
		if err := g.run(ctx); err != nil {
			return nil, err
		}
	}
	return &v.report, nil
}

// validation is a run of [Validate].
type validation struct {
	dir    string
	table  engine.Table
	report Report
}

func (v *validation) add(c Check) { v.report.Checks = append(v.report.Checks, judged(c)) }

// load reads a file of the folder.
func load[T datasets.Record](v *validation, elements ...string) ([]T, error) {
	rows, _, err := datasets.Load[T](filepath.Join(append([]string{v.dir}, elements...)...))
	return rows, err
}

// run returns the rows of a run, or an error that names it.
func run(rows []datasets.Row, name string) ([]datasets.Row, error) {
	_, runs := byRun(rows, func(r *datasets.Row) string { return r.Run })
	if len(runs[name]) == 0 {
		return nil, fmt.Errorf("run %s: not in the file; the folder holds other data than expected", name)
	}
	return runs[name], nil
}
