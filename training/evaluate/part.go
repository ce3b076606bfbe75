package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/presage-router/presage/datasets"
)

// Part is what one fresh learner is judged on: a whole file, or the runs in it that measured the
// same model on the same hardware under the same stack.
type Part struct {
	File    string
	Unit    string // of the file: "model, hardware, replicas, stack"; empty: all of it
	Format  datasets.Format
	Read    int              // rows of the part
	Dropped map[string]int   // rows left out, by reason
	runs    [][]datasets.Row // in the order of the file
	byRun   map[string]int
	kept    int // rows with a label
}

// Load reads a file and parts it. The file must hold requests with the TTFT or ITL of completed
// answers. Rows that the reader refused are counted with the first part.
func Load(path string) ([]*Part, error) {
	rows, report, err := datasets.Load[datasets.Row](path)
	if err != nil {
		return nil, err
	}
	var parts []*Part
	byUnit := map[string]*Part{}
	for i := range rows {
		unit := unitOf(report.Format, &rows[i])
		p := byUnit[unit]
		if p == nil {
			p = &Part{File: path, Unit: unit, Format: report.Format, Dropped: map[string]int{}, byRun: map[string]int{}}
			byUnit[unit] = p
			parts = append(parts, p)
		}
		p.add(&rows[i])
	}
	why := map[string]int{}
	kept := parts[:0]
	for _, p := range parts {
		for reason, n := range p.Dropped {
			why[reason] += n
		}
		if p.kept > 0 {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		for reason, n := range report.Dropped {
			why[reason] += n
		}
		return nil, fmt.Errorf("%s: no usable row among %d%s; rows with the TTFT or ITL of completed, streamed answers are needed", path, report.Rows, reasons(why))
	}
	for reason, n := range report.Dropped {
		kept[0].Dropped[reason] += n
		kept[0].Read += n
	}
	return kept, nil
}

// unitOf names the unit of a row. Only files of this project's schema hold several.
func unitOf(f datasets.Format, r *datasets.Row) string {
	if f != datasets.Measured {
		return ""
	}
	return fmt.Sprintf("%s, %s, %d, %s", r.Model, r.Hardware, max(r.Replicas, 1), r.Stack)
}

// add takes a row. One without a usable label still weighs on its endpoint for as long as it ran.
func (p *Part) add(r *datasets.Row) {
	p.Read++
	why := settle(r, p.Format != datasets.EPP)
	if why != "" {
		p.Dropped[why]++
		if p.Format == datasets.EPP || !weighs(r) {
			return
		}
		r.TTFT, r.ITL = math.NaN(), math.NaN()
	} else {
		p.kept++
	}
	n, ok := p.byRun[r.Run]
	if !ok {
		n = len(p.runs)
		p.byRun[r.Run] = n
		p.runs = append(p.runs, nil)
	}
	p.runs[n] = append(p.runs[n], *r)
}

// longest is the longest time that is believed: beyond a day it is the unit that is wrong.
const longest = 86400

// settle makes the times of a row consistent, or says why it is no example. clock: the format has
// arrival times, and the row needs one and an end.
func settle(r *datasets.Row, clock bool) (why string) {
	if r.Output >= 0 && r.Output < 2 {
		r.ITL = math.NaN() // a single token has no gap
	}
	for _, v := range []*float64{&r.TTFT, &r.ITL} {
		if datasets.Known(*v) && !(*v > 0 && *v < longest) {
			return "time not between 0 and a day"
		}
	}
	switch {
	case r.Outcome != datasets.Completed:
		return "not completed"
	case r.Prompt <= 0:
		return "no prompt length"
	case !datasets.Known(r.TTFT) && !datasets.Known(r.ITL):
		return "no TTFT and no ITL"
	case !clock:
		return ""
	case !(r.Arrival >= 0):
		return "no arrival time"
	}
	sum := math.NaN() // E2E by the other times
	switch {
	case r.Output >= 2:
		sum = r.TTFT + r.ITL*float64(r.Output-1)
	case r.Output == 1:
		sum = r.TTFT
	}
	switch {
	case !datasets.Known(r.E2E) && !datasets.Known(sum):
		return "no end time"
	case !datasets.Known(r.E2E):
		r.E2E = sum
	case !(r.E2E > 0 && r.E2E < longest):
		return "time not between 0 and a day"
	case r.TTFT > r.E2E || math.Abs(sum-r.E2E) > disagree*max(sum, r.E2E):
		return "times contradict each other"
	}
	return ""
}

// disagree is how far TTFT + (n-1)*ITL may be from E2E, as a share of the larger: some tools count
// gaps between chunks of several tokens, but a mixed-up unit is a thousand.
const disagree = 0.9

// weighs reports whether it is known when the request was on its endpoint.
func weighs(r *datasets.Row) bool {
	return r.Prompt > 0 && r.Arrival >= 0 && r.E2E > 0 && r.E2E < longest
}

func reasons(n map[string]int) string {
	var list []string
	for reason := range n {
		list = append(list, reason)
	}
	if len(list) == 0 {
		return ""
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(n[b]-n[a], strings.Compare(a, b)) })
	for i, reason := range list {
		list[i] = fmt.Sprintf("%s %d", reason, n[reason])
	}
	return " (" + strings.Join(list, ", ") + ")"
}
