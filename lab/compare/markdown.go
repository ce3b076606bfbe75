package compare

import (
	"fmt"
	"strings"
)

// Markdown is the table of cells, losses as visible as wins.
func Markdown(cells []Cell) string {
	var b strings.Builder
	b.WriteString("| scenario | load | ours % | best baseline % | difference, 95 % | argmin-ttft | adaptive | round-robin | TTFT mean ms, ours / best | p90 | ITL ms | E2E s | hit % |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range cells {
		c := &cells[i]
		fmt.Fprintf(&b, "| %s | %g | %.1f | %.1f %s | %s | %s | %s | %s | %.0f / %.0f | %.0f / %.0f | %.1f / %.1f | %.2f / %.2f | %.0f / %.0f |\n",
			c.Scenario, c.Load, c.Ours.Attainment, c.Theirs.Attainment, c.Best, c.Diff.verdict(), c.also("argmin-ttft"), c.also("adaptive"), c.also("round-robin"),
			c.Ours.TTFTMean, c.Theirs.TTFTMean, c.Ours.TTFT90, c.Theirs.TTFT90, c.Ours.ITL, c.Theirs.ITL,
			c.Ours.E2E/1e3, c.Theirs.E2E/1e3, 100*c.Ours.Hit, 100*c.Theirs.Hit)
	}
	return b.String()
}

func (d *Difference) verdict() string {
	word := "tie"
	switch {
	case d.CI95[0] > 0:
		word = "**win**"
	case d.CI95[1] < 0:
		word = "**loss**"
	}
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f) %s", d.Mean, d.CI95[0], d.CI95[1], word)
}

func (c *Cell) also(name string) string {
	r, ok := c.Also[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.1f", r.Attainment)
}

// MarkdownGates is the list of promises.
func MarkdownGates(gates []Gate) string {
	var b strings.Builder
	b.WriteString("| promise | got | at least | kept | |\n|---|---|---|---|---|\n")
	for _, g := range gates {
		kept := "yes"
		if !g.OK {
			kept = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s | %s |\n", g.Name, g.Got, g.Want, kept, g.Note)
	}
	return b.String()
}
