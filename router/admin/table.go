package admin

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/presage-router/presage/router"
)

// shownRows is how many candidates the text shows unless asked for all.
const shownRows = 8

// table lists the candidates and, in lines below, who was left out by what.
func (x *Explained) table(b *strings.Builder, all bool) {
	var rows []*Candidate
	for i := range x.Candidates {
		if c := &x.Candidates[i]; c.LeftOut == "" {
			rows = append(rows, c)
		}
	}
	x.order(rows)
	hidden := 0
	if !all && len(rows) > shownRows {
		hidden, rows = len(rows)-shownRows, rows[:shownRows]
	}
	if len(rows) > 0 {
		writeColumns(b, x.cells(rows))
	}
	if !x.All && len(x.Candidates) > 0 {
		b.WriteString("  the others were not kept\n")
	}
	if hidden > 0 {
		fmt.Fprintf(b, "  … %d more (--all)\n", hidden)
	}
	x.leftOut(b, all)
}

// cells returns the table's text, the header first.
func (x *Explained) cells(rows []*Candidate) [][]string {
	head := []string{"  ENDPOINT", "CACHED", "IN FLIGHT", "RUN/WAIT", "KV", "AGE"}
	foretold := slices.ContainsFunc(rows, func(c *Candidate) bool { return c.Foretold != nil })
	if foretold {
		head = append(head, "TTFT p50/p90", "ITL p50/p90")
	}
	for _, t := range x.Terms {
		head = append(head, strings.ToUpper(t))
	}
	if len(x.Terms) > 0 {
		head = append(head, "TOTAL")
	}
	table := [][]string{append(head, "PICKED")}
	for _, c := range rows {
		mark := "  "
		if c.Picked {
			mark = "* "
		}
		row := []string{mark + c.Endpoint, x.share(c), strconv.Itoa(c.Requests), count(c.Running) + "/" + count(c.Waiting), usage(c.KV), age(c.Age)}
		if foretold {
			row = append(row, c.Foretold.cells()...)
		}
		for _, t := range c.Terms {
			row = append(row, x.figure(t))
		}
		if len(x.Terms) > 0 {
			row = append(row, x.figure(c.Total))
		}
		table = append(table, append(row, x.chance(c)))
	}
	return table
}

// cells are the medians and 90 % quantiles of both times, in milliseconds.
func (f *Foretold) cells() []string {
	cell := func(q *Quantiles, format string) string {
		if q == nil {
			return "-"
		}
		return fmt.Sprintf(format+"/"+format, q.P50, q.P90)
	}
	if f == nil {
		return []string{"-", "-"}
	}
	return []string{cell(f.TTFT, "%.0f"), cell(f.ITL, "%.1f")}
}

// writeColumns aligns the first column to the left and all others, being numbers, to the right.
func writeColumns(b *strings.Builder, table [][]string) {
	var width []int
	for _, row := range table {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// leftOut lists the endpoints that could not win, by reason.
func (x *Explained) leftOut(b *strings.Builder, all bool) {
	by := map[string][]string{}
	for i := range x.Candidates {
		if c := &x.Candidates[i]; c.LeftOut != "" {
			by[c.LeftOut] = append(by[c.LeftOut], c.Endpoint)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		names := by[why]
		if extra := len(names) - shownRows; extra > 0 && !all {
			names = append(names[:shownRows:shownRows], fmt.Sprintf("%d more", extra))
		}
		fmt.Fprintf(b, "left out            %s: %s\n", why, strings.Join(names, ", "))
	}
}

// figure formats a term or total in the unit of the policy; the unit itself only where it is short.
func (x *Explained) figure(f Figure) string {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	if x.Unit == "score" || x.Unit == "s" {
		return router.Amount(v, x.Unit)
	}
	return router.Amount(v, "")
}

// order puts the picked one first, then the best.
func (x *Explained) order(rows []*Candidate) {
	higher := x.Unit == "score"
	slices.SortStableFunc(rows, func(a, b *Candidate) int {
		switch {
		case a.Picked != b.Picked:
			if a.Picked {
				return -1
			}
			return 1
		case a.Total == b.Total:
			return 0
		case (a.Total > b.Total) == higher:
			return -1
		}
		return 1
	})
}

func (x *Explained) share(c *Candidate) string {
	if x.Prompt <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100*c.Cached/x.Prompt)
}

func (x *Explained) chance(c *Candidate) string {
	switch {
	case c.Chance != nil:
		return router.Percent(*c.Chance)
	case c.Picked:
		return router.Percent(x.Propensity)
	}
	return ""
}

func count(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

func usage(k *float64) string {
	if k == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**k)
}

func age(ms *int) string {
	if ms == nil {
		return "never"
	}
	if *ms >= 10_000 {
		return fmt.Sprintf("%d s", *ms/1000)
	}
	return router.Amount(float64(*ms), "ms")
}
