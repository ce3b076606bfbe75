package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/training/evaluate"
)

// table writes rows of cells below a title, numbers aligned on the right.
func table(t *terminal.Terminal, title string, write func(row func(cells ...any))) {
	t.Result("")
	t.Result("%s", t.Paint(terminal.Bold, title))
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	write(func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(w, "%v\t", c)
		}
		fmt.Fprintln(w)
	})
	_ = w.Flush() // an error of Out shows at the next write
}

func percent(v float64) string { return fmt.Sprintf("%.1f", 100*v) }

func signed(v float64) string { return fmt.Sprintf("%+.3f", v) }

// each calls f for each file and target that has forecasts.
func each(files []*evaluate.File, f func(*evaluate.File, string, evaluate.Score)) {
	for _, file := range files {
		for _, name := range evaluate.TargetNames {
			if s, ok := file.Targets[name]; ok {
				f(file, name, s)
			}
		}
	}
}

// title names a part.
func title(f *evaluate.File) string {
	if f.Unit != "" {
		return f.Unit
	}
	return filepath.Base(f.File)
}

func printEval(t *terminal.Terminal, files []*evaluate.File, all bool) {
	if len(files) == 0 {
		return
	}
	for _, f := range files {
		t.Result("%s: %s, %d rows, %d kept", title(f), f.Format, f.Rows, f.Kept)
		for _, reason := range slices.Sorted(maps.Keys(f.Dropped)) {
			t.Result("  left out: %s %d", reason, f.Dropped[reason])
		}
	}
	table(t, "Forecasts: errors and coverage in %, bias as log(P50/actual)", func(row func(...any)) {
		row("", "", "n", "skipped", "MAPE", "median", "p90", "bias", "≤P50", "≤P90", "≤P99", "P90/P50", "vs law", "vs best", "")
		each(files, func(f *evaluate.File, name string, s evaluate.Score) {
			a := f.Against[name]
			row(title(f), name, s.N, s.Skipped, percent(s.MAPE), percent(s.MedAPE), percent(s.P90APE), signed(s.Bias), percent(s.Coverage50),
				percent(s.Coverage90), percent(s.Coverage99), fmt.Sprintf("%.2f", s.Spread), fmt.Sprintf("%.2f", a.LawRatio), fmt.Sprintf("%.2f", a.BestRatio), a.Best)
		})
	})
	printRivals(t, files)
	if all {
		each(files, func(f *evaluate.File, name string, _ evaluate.Score) { printStrata(t, f, name) })
	}
}

func printRivals(t *terminal.Terminal, files []*evaluate.File) {
	var names []string
	each(files, func(f *evaluate.File, name string, _ evaluate.Score) {
		for rival := range f.Rivals[name] {
			if !slices.Contains(names, rival) {
				names = append(names, rival)
			}
		}
	})
	slices.Sort(names)
	table(t, "MAPE in %: the blend, its members, models fitted in batches", func(row func(...any)) {
		head := []any{"", "", "blend"}
		for _, rival := range names {
			head = append(head, rival)
		}
		row(head...)
		each(files, func(f *evaluate.File, name string, s evaluate.Score) {
			cells := []any{title(f), name, percent(s.MAPE)}
			for _, rival := range names {
				if p, ok := f.Rivals[name][rival]; ok {
					cells = append(cells, percent(p.MAPE))
				} else {
					cells = append(cells, "-")
				}
			}
			row(cells...)
		})
	})
}

func printStrata(t *terminal.Terminal, f *evaluate.File, name string) {
	table(t, title(f)+", "+name, func(row func(...any)) {
		row("", "n", "MAPE", "median", "p90", "bias", "≤P90")
		for _, part := range slices.Sorted(maps.Keys(f.Strata[name])) {
			s := f.Strata[name][part]
			row(part, s.N, percent(s.MAPE), percent(s.MedAPE), percent(s.P90APE), signed(s.Bias), percent(s.Coverage90))
		}
	})
	if w, ok := f.Windows[name]; ok {
		t.Result("%d windows of %d s: ≤P90 in %% least %s, p10 %s, median %s, p90 %s; below 75 %%: %d. Drift alarms: %d.", w.N, w.Seconds,
			percent(w.Least), percent(w.P10), percent(w.P50), percent(w.P90), w.Below75, f.Alarms[name])
	}
}

func printAblations(t *terminal.Terminal, whole []*evaluate.File, names []string, results map[string][]*evaluate.File) {
	table(t, "Without parts of the learner: MAPE and coverage of P90 in %", func(row func(...any)) {
		head := []any{"", "", "whole", "≤P90"}
		for _, name := range names {
			head = append(head, "-"+name, "≤P90")
		}
		row(head...)
		for i, f := range whole {
			for _, target := range evaluate.TargetNames {
				s, ok := f.Targets[target]
				if !ok {
					continue
				}
				cells := []any{title(f), target, percent(s.MAPE), percent(s.Coverage90)}
				for _, name := range names {
					a := results[name][i].Targets[target]
					cells = append(cells, percent(a.MAPE), percent(a.Coverage90))
				}
				row(cells...)
			}
		}
	})
}
