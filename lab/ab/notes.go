package ab

import (
	"math"
	"time"

	"github.com/presage-router/presage/lab/report"
)

// notes adds what a reader must know to read the figures.
func (l *Ledger) notes(r *Result) {
	p := l.plan
	if p.Unit == "block" && p.short == "" && p.Washout < max(leastWash, p.Turnover) {
		r.note("The washout is shorter than it should be, as it was asked for: caches may still hold what the other arm left.")
	}
	if p.Unit == "block" && p.Turnover == 0 {
		r.note("The log does not say how large the caches are, so the washout does not know how long they take to turn over.")
	}
	if p.Unit == "session" && !p.sessions {
		r.note("The records tell no sessions apart: each request is counted in the cell of its own time.")
	}
	if n := p.control(); n > 1 {
		r.note("%d arms are held against %s: the intervals hold together, each at a level of %.1f %%.", n, r.Control, 100*l.level())
	}
	for i := range r.Paired {
		if d := &r.Paired[i]; d.Metric == "errors" && d.Diff.Known() && math.Abs(float64(d.Diff)) > 1 {
			r.note("%s answered another share of its requests than %s (errors %+.1f points): TTFT and ITL are of those that were answered.", d.A, d.B, float64(d.Diff))
		}
	}
	for i := range r.Paired {
		d := &r.Paired[i]
		if d.Metric == metrics[0].name && d.Base >= 99 && d.Base+d.Diff >= 99 {
			r.note("Nearly every request met its SLO with %s and with %s: a stricter SLO, or more load, would tell more of them apart.", d.A, d.B)
		}
	}
	l.endings(r)
}

// endings tells of arms that end long before the log does.
func (l *Ledger) endings(r *Result) {
	p := l.plan
	kept := l.kept()
	if len(kept) == 0 {
		return
	}
	end := kept[len(kept)-1]
	for arm := range p.Arms {
		last, n := int64(math.MinInt64), int64(0)
		for _, k := range kept {
			if c := l.cells[k]; c.arms[arm] != nil && !l.stray(c, arm) {
				last, n = k, n+1
			}
		}
		if n == 0 {
			continue
		}
		// Twelve turns without it are a chance of 2^-12 where there are two arms of equal shares.
		if turn := (end - kept[0] + 1) / n; end-last > 6*max(turn, 2) {
			at := time.Unix(0, (last+1)*int64(p.Block)).UTC()
			early := textf("%s before the log does: a guardrail tripped, or the configuration changed", brief(time.Duration(end-last)*p.Block))
			r.note("%s ends at %s, %s.", p.Arms[arm].Name, at.Format("2006-01-02 15:04 MST"), early)
			r.ended = append(r.ended, report.Trip{At: at, Name: p.Arms[arm].Name + " ends " + early, Value: report.Unknown(), Limit: report.Unknown()})
		}
	}
}

func (r *Result) note(format string, args ...any) { r.Notes = append(r.Notes, textf(format, args...)) }

// calendar lists the blocks of a switchback that count.
func (l *Ledger) calendar() []report.Block {
	if l.plan.Unit != "block" {
		return nil
	}
	var out []report.Block
	for _, k := range l.kept() {
		c := l.cells[k]
		arm := l.owner(c)
		out = append(out, report.Block{
			Begin: time.Unix(0, k*int64(l.plan.Block)).UTC(), Length: l.plan.Block, Washout: l.plan.Washout, Arm: l.plan.Arms[arm].Name,
			Requests: c.arms[arm].arrived, Met: c.arms[arm].met,
		})
	}
	return out
}
