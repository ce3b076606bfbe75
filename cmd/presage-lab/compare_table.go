package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/compare"
)

// usualColumns are those of tables, the most important first: as many as the terminal is wide.
var usualColumns = []string{
	compare.PrimaryMetric, "ttft_p90_ms", "itl_mean_ms", "hit_ratio", "load_cv", "herd_index", "ttft_p50_ms", "ttft_p99_ms", "goodput_rps", "changed_ratio",
}

// columnsOf are the columns with these names; nil of none.
func columnsOf(names []string) ([]compare.Measure, error) {
	var columns []compare.Measure
	for _, name := range names {
		m, err := compare.MeasureOf(name)
		if err != nil {
			return nil, fmt.Errorf("--columns: %w", err)
		}
		columns = append(columns, m)
	}
	return columns, nil
}

// fitting are the usual columns that fit into a width, beside the names of policies.
func fitting(width int, policies []string) ([]compare.Measure, error) {
	all, err := columnsOf(usualColumns)
	if err != nil {
		return nil, err
	}
	used := 0
	for _, p := range policies {
		used = max(used, len(p)+2)
	}
	for i := range all {
		if used += max(len(all[i].Title), 6) + 2; all[i].Name == compare.PrimaryMetric {
			used += len("-100.0 (-100.0 to -100.0)") + 2
		}
		if used > width && i > 0 {
			return all[:i], nil
		}
	}
	return all, nil
}

// printOutcome prints a table per load, the sustained loads, and what has to be known about them.
func printOutcome(t *terminal.Terminal, o *compare.Outcome, columns []compare.Measure) error {
	if columns == nil {
		var err error
		if columns, err = fitting(t.Width, o.Order); err != nil {
			return err
		}
	}
	if o.Seeds > 0 {
		for i := range o.Sweep {
			printSection(t, o, &o.Sweep[i], columns)
		}
		printKnees(t, o)
		printVerdicts(t, o)
	}
	for _, n := range o.Notes {
		t.Result("%s", n)
	}
	if o.Void != "" {
		t.Result("%s", t.Paint(terminal.Red, "Void: "+o.Void))
	}
	return nil
}

func printSection(t *terminal.Terminal, o *compare.Outcome, s *compare.Section, columns []compare.Measure) {
	t.Result("")
	t.Result("%s at %g times its rate, %.1f requests/s, %d seeds; %s minus the others; times in ms", o.Scenario, s.Load, s.Offered, o.Seeds, o.Order[0])
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "policy\t"
	for i := range columns {
		head += columns[i].Title + "\t"
		if columns[i].Name == compare.PrimaryMetric {
			head += "difference, 95 %\t"
		}
	}
	fmt.Fprintln(w, head)
	for _, p := range o.Order {
		st := s.Policies[p]
		fmt.Fprintf(w, "%s\t", p)
		for i := range columns {
			m := &columns[i]
			v, ok := st.Mean[m.Name]
			cell := "-"
			if ok {
				cell = m.Format(v)
			}
			if m.Answered && st.Unequal {
				cell += "*"
			}
			fmt.Fprintf(w, "%s\t", cell)
			if m.Name == compare.PrimaryMetric {
				fmt.Fprintf(w, "%s\t", difference(s.Paired, p, m))
			}
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	printClasses(t, o, s)
}

// difference is that of the first policy to another one in a metric; empty for the first itself.
func difference(paired []compare.Comparison, other string, m *compare.Measure) string {
	for i := range paired {
		c := &paired[i]
		if c.B != other || c.Metric != m.Name {
			continue
		}
		scale := 1.0
		if m.Percent {
			scale = 100
		}
		text := fmt.Sprintf("%+.*f", m.Digits, scale*c.Diff)
		if c.Seeds > 1 {
			text += fmt.Sprintf(" (%+.*f to %+.*f)", m.Digits, scale*c.CI95[0], m.Digits, scale*c.CI95[1])
		}
		return text
	}
	return ""
}

// printClasses prints what each SLO class attained, where there are several.
func printClasses(t *terminal.Terminal, o *compare.Outcome, s *compare.Section) {
	first := s.Policies[o.Order[0]].Classes
	if first == nil {
		return
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := slices.Sorted(maps.Keys(first))
	fmt.Fprintf(w, "in SLO %%, by class\t%s\t\n", strings.Join(names, "\t"))
	for _, p := range o.Order {
		fmt.Fprintf(w, "%s\t", p)
		for _, name := range names {
			fmt.Fprintf(w, "%.1f\t", 100*s.Policies[p].Classes[name].Attainment)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}

// printKnees prints the sustained loads.
func printKnees(t *terminal.Terminal, o *compare.Outcome) {
	if o.Knees == nil {
		return
	}
	t.Result("")
	t.Result("%s: load at which 90 %% keep their SLOs, %d seeds", o.Scenario, o.Seeds)
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "policy\tsustained load\t95 %%\trequests/s\t%s in multiples of it, 95 %%\t\n", o.Order[0])
	for i, p := range o.Order {
		k := o.Knees[p]
		ratio := ""
		if i > 0 {
			r := compare.KneeRatio(o.Knees[o.Order[0]], k)
			switch {
			case r.Seeds > 1:
				ratio = fmt.Sprintf("%.2f (%.2f to %.2f)", r.Ratio, r.CI95[0], r.CI95[1])
			case r.Seeds == 1:
				ratio = fmt.Sprintf("%.2f", r.Ratio)
			}
		}
		bound := ""
		if k.Unreached > 0 {
			bound = ">= "
		}
		span := ""
		if len(k.PerSeed) > 1 {
			span = fmt.Sprintf("%.2f to %.2f", k.CI95[0], k.CI95[1])
		}
		fmt.Fprintf(w, "%s\t%s%.3f\t%s\t%.2f\t%s\t\n", p, bound, k.Load, span, k.Rate, ratio)
	}
	_ = w.Flush()
}

// printVerdicts prints what the primary comparisons say.
func printVerdicts(t *terminal.Terminal, o *compare.Outcome) {
	if len(o.Primary) == 0 {
		return
	}
	what := fmt.Sprintf("attainment at load %g", o.Load)
	if o.Knees != nil {
		what = "sustained load"
	}
	t.Result("")
	t.Result("%s: %s of %s, adjusted by Holm for all comparisons", o.Scenario, what, o.Order[0])
	for i := range o.Primary {
		c := &o.Primary[i]
		size, span, unit := 100*c.Diff, c.CI95, "points"
		if c.Metric == compare.KneeMetric {
			size, span, unit = 100*c.Relative, c.RelativeCI95, "%"
		}
		line := fmt.Sprintf("  %-10s against %s: %+.1f %s", sign(t, c.Verdict)+string(c.Verdict), c.B, size, unit)
		if c.Metric == compare.KneeMetric && !(o.Knees[c.B].Load > 0) {
			line = fmt.Sprintf("  %-10s against %s, which sustains nothing", sign(t, c.Verdict)+string(c.Verdict), c.B)
		} else if c.Seeds > 1 {
			line += fmt.Sprintf(" (%+.1f to %+.1f), p %.2g", 100*span[0], 100*span[1], c.Holm)
		}
		line += fmt.Sprintf(", better on %d of %d seeds", c.Wins, c.Seeds)
		if c.Needed > c.Seeds {
			line += fmt.Sprintf("; about %d seeds would settle it", c.Needed)
		}
		t.Result("%s", line)
	}
}

// sign stands before a verdict, for who does not see colours.
func sign(t *terminal.Terminal, v compare.Verdict) string {
	signs := map[compare.Verdict][2]string{
		compare.Better: {"▲ ", "+ "}, compare.Worse: {"▼ ", "- "}, compare.Same: {"= ", "= "}, compare.Undecided: {"◇ ", "? "},
	}
	s, ok := signs[v]
	switch {
	case !ok:
		return "  "
	case t.UTF8:
		return s[0]
	}
	return s[1]
}
