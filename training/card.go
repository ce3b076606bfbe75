package training

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/training/evaluate"
)

// Card is the result as a page to read, in Markdown.
func (r *Result) Card(name string) []byte {
	var b strings.Builder
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
	fmt.Fprintf(&b, "# Model %s\n\n", name)
	fmt.Fprintf(&b, "Foretells TTFT and mean ITL of requests. Learned from %d records, %s to %s (data %s, features %s).\n\n", r.Rows, day(r.Since), day(r.Until), r.Data, r.Schema)
	fmt.Fprintf(&b, "Judged on the last %d of them, from %s, in order of time: each forecast from what was known at the decision, each label learned once it was known.\n\n", r.Holdout, day(r.Split))
	b.WriteString("| time | of | n | MAPE % | median APE % | P90 APE % | bias | within P50 % | P90 % | P99 % | pinball |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	others := make([]string, 0, len(r.Baselines))
	for other := range r.Baselines {
		others = append(others, other)
	}
	slices.Sort(others)
	for _, target := range evaluate.TargetNames {
		row := func(of string, s Score) {
			if s.N > 0 {
				fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %.1f | %.1f | %+.3f | %.1f | %.1f | %.1f | %.4f |\n",
					target, of, s.N, 100*s.MAPE, 100*s.MedAPE, 100*s.P90APE, s.Bias, 100*s.Coverage50, 100*s.Coverage90, 100*s.Coverage99, s.Pinball)
			}
		}
		row("this model", r.Metrics[target])
		for _, other := range others {
			row(other, r.Baselines[other][target])
		}
	}
	b.WriteString("\nPinball: mean loss of P50, P90 and P99 of the logarithms. The prior is the law of GPU and model before anything is learned.\n")
	champion := "the champion"
	if r.Gate.Champion != "" {
		champion += ", " + r.Gate.Champion
	}
	fmt.Fprintf(&b, "\nAgainst %s: %s.\n", champion, r.Gate.Why)
	if len(r.Dropped) > 0 {
		var parts []string
		for why, n := range r.Dropped {
			parts = append(parts, fmt.Sprintf("%s %d", why, n))
		}
		slices.Sort(parts)
		fmt.Fprintf(&b, "\nNot learned: %s.\n", strings.Join(parts, ", "))
	}
	return []byte(b.String())
}
