package sensitivity

import (
	"fmt"
	"strings"
)

// Markdown is the table, one row per setting, grouped by dimension.
func (t *Table) Markdown() string {
	var b strings.Builder
	b.WriteString("| what is wrong | by | attained % | difference, 95 % | TTFT mean ms | p90 | ITL ms | E2E s | hit % |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range t.Rows {
		r := &t.Rows[i]
		fmt.Fprintf(&b, "| %s | %s | %.1f | %s | %.0f | %.0f | %.1f | %.2f | %.0f |\n",
			r.What(), r.Setting, r.Attainment, r.Difference(), r.TTFT, r.TTFT90, r.ITL, r.E2E/1e3, 100*r.Hit)
	}
	return b.String()
}

// What names what is wrong; nothing is, in the plain run.
func (r *Row) What() string {
	if r.Dimension == "" {
		return "nothing"
	}
	return r.Dimension
}

// Difference is the difference to the plain run with its interval, as text; empty for the plain run and
// where there are too few seeds.
func (r *Row) Difference() string {
	if r.Diff == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f)", *r.Diff, r.CI95[0], r.CI95[1])
}
