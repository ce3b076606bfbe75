package compare

import (
	"fmt"
	"strings"
)

// remark writes down what a reader has to know before reading the figures.
func (o *Outcome) remark() {
	add := func(format string, args ...any) { o.Notes = append(o.Notes, fmt.Sprintf(format, args...)) }
	if o.Partial {
		add("stopped: %d of %d runs done; %d of %d seeds are complete and count", o.Done, o.Planned, o.Seeds, o.Asked)
	}
	if o.Seeds < MinSeeds {
		add("no verdict: %d of %d seeds", o.Seeds, MinSeeds)
	}
	if other := o.unequal(); len(other) > 0 {
		add("other numbers of requests were answered than by %s: by %s; their times, marked *, are those of different requests", o.Order[0], strings.Join(other, ", "))
	}
	if o.NoKnee != "" {
		add("%s", o.NoKnee)
	}
	for _, p := range o.Order {
		k := o.Knees[p]
		if k == nil {
			continue
		}
		n := len(k.PerSeed)
		if k.Zero > 0 {
			add("%s: below 90 %% even at load %g on %d of %d seeds: counted as 0", p, k.lowest(), k.Zero, n)
		}
		if k.Unreached > 0 {
			highest := 0.0
			for _, s := range k.PerSeed {
				if len(s.Points) > 0 {
					highest = max(highest, s.Points[len(s.Points)-1].Load)
				}
			}
			add("%s: sustained rate not reached on %d of %d seeds at load %g: raise the swept rates", p, k.Unreached, n, highest)
		}
		if k.Coarse {
			add("%s: coarse: on some seed the loads around the knee are more than 10 %% of it apart", p)
		}
	}
}

// unequal lists the policies that answered other numbers of requests than the first, with the loads.
func (o *Outcome) unequal() []string {
	var list []string
	for _, p := range o.Order {
		var at []string
		for i := range o.Sweep {
			if o.Sweep[i].Policies[p].Unequal {
				at = append(at, fmt.Sprint(o.Sweep[i].Load))
			}
		}
		if len(at) > 0 {
			list = append(list, p+" at load "+strings.Join(at, ", "))
		}
	}
	return list
}
