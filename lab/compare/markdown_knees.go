package compare

import (
	"fmt"
	"strings"
)

// MarkdownKnees is the table of sustained loads.
func MarkdownKnees(cells []KneeCell) string {
	var b strings.Builder
	b.WriteString("| scenario | ours, load | requests/s | best baseline | ours / best, 95 % | ours / round-robin | |\n|---|---|---|---|---|---|---|\n")
	for i := range cells {
		c := &cells[i]
		if c.NoKnee != "" {
			fmt.Fprintf(&b, "| %s | | | | | | %s |\n", c.Scenario, c.NoKnee)
			continue
		}
		k := c.Knees[c.Policy]
		theirs := ""
		if t := c.Knees[c.Best]; t != nil {
			theirs = fmt.Sprintf("%.3f %s", t.Load, c.Best)
		}
		fmt.Fprintf(&b, "| %s | %.3f | %.2f | %s | %s | %s | %s |\n", c.Scenario, k.Load, k.Rate, theirs, c.Ratio.text(), c.plain(), c.remarks())
	}
	return b.String()
}

func (c *KneeCell) plain() string {
	r, ok := c.Also["round-robin"]
	if !ok {
		return ""
	}
	return r.text()
}

// text is a ratio with its interval, or why there is none.
func (r *Ratio) text() string {
	switch {
	case r.Seeds == 0 && r.Zero > 0:
		return "its knee is 0"
	case r.Seeds == 0 && r.Lost > 0:
		return "ours is 0"
	case r.Seeds == 0:
		return ""
	case r.Seeds == 1:
		return fmt.Sprintf("%.3f", r.Ratio)
	}
	return fmt.Sprintf("%.3f (%.3f to %.3f)", r.Ratio, r.CI95[0], r.CI95[1])
}

// remarks say what limits the knees of a cell.
func (c *KneeCell) remarks() string {
	var notes []string
	for _, p := range unique([]string{c.Policy, c.Best}) {
		k := c.Knees[p]
		if k == nil {
			continue
		}
		n := len(k.PerSeed)
		if k.Zero > 0 {
			notes = append(notes, fmt.Sprintf("%s: 0 on %d of %d seeds", p, k.Zero, n))
		}
		if k.Unreached > 0 {
			notes = append(notes, fmt.Sprintf("%s: not reached on %d of %d seeds", p, k.Unreached, n))
		}
		if k.Coarse {
			notes = append(notes, p+": coarse")
		}
	}
	return strings.Join(notes, "; ")
}
