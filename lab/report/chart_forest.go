package report

import (
	"html/template"
	"math"
	"unicode/utf8"
)

// row is one line of a forest plot.
type row struct {
	Name   string
	D      Difference // as written, in its unit
	State  standing
	More   bool // above 0 is better for ours
	Doubt  bool // it may not carry over to hardware
	Figure string
}

// forest draws differences: a bar for the interval, a dot for each seed, hollow where nothing is decided.
// Rows with nothing to draw keep their name and a dash.
func forest(rows []row, u string) figure {
	lo, hi := 0.0, 0.0
	for _, r := range rows {
		for _, v := range append([]Value{r.D.Mean, r.D.Low, r.D.High}, r.D.Seeds...) {
			if drawable(v) {
				lo, hi = min(lo, float64(v)), max(hi, float64(v))
			}
		}
	}
	if lo == hi {
		lo, hi = -1, 1
	}
	pad := 0.06 * (hi - lo)
	longest := 0
	for _, r := range rows {
		longest = max(longest, utf8.RuneCountInString(r.Figure))
	}
	return both(func(w float64) template.HTML {
		step, left, right := 46.0, 118.0, w-20-6.6*float64(min(longest, 26))
		if w == narrow {
			step, left, right = 58, 10, w-10
		}
		h := step*float64(len(rows)) + 34
		g := newCanvas(w, h, "Paired differences with 95 % intervals, "+u)
		x := axis{lo - pad, hi + pad, left, right}
		bottom := h - 24
		ticks := 4
		for _, t := range x.ticks(ticks) {
			if t != 0 {
				g.line("grid", x.at(t), 4, x.at(t), bottom)
			}
			g.text("tick", "middle", x.at(t), bottom+16, signed(t, x.decimals(ticks)))
		}
		g.line("zero", x.at(0), 4, x.at(0), bottom)
		for i, r := range rows {
			y := step*float64(i) + 18
			if w == narrow {
				g.name("label", "start", 2, y-2, r.Name, 24)
				g.text("value", "end", w-2, y-2, r.Figure)
				y += 17
			} else {
				g.name("label", "end", left-10, y+4, r.Name, 17)
				g.text("value", "end", w-2, y+4, r.Figure)
			}
			r.draw(g, x, y)
		}
		return g.done()
	})
}

func (r *row) draw(g *canvas, x axis, y float64) {
	if !drawable(r.D.Mean) {
		return
	}
	kind := ""
	switch r.State {
	case undecided, tooFew:
		kind = "undecided"
	case better:
		kind = "better"
	case worse:
		kind = "worse"
	case same:
		kind = "same"
	}
	if drawable(r.D.Low, r.D.High) {
		g.line("ci "+kind, x.at(r.D.Low), y, x.at(r.D.High), y)
	}
	g.dot("mean "+kind, x.at(r.D.Mean), y, 5, r.Name+" "+r.Figure)
	for k, v := range r.D.Seeds {
		if k == 200 {
			break
		}
		if drawable(v) {
			g.dot("seed", x.at(v), y+11+float64(k*7%5), 1.8, "")
		}
	}
}

// bars draws captured shares.
func bars(c *Captured, ours string) figure {
	lo, hi := 0.0, 1.0
	for _, b := range c.Bars {
		for _, v := range []Value{b.Share.Mean, b.Share.Low, b.Share.High} {
			if drawable(v) {
				lo, hi = min(lo, max(float64(v), -1)), max(hi, min(float64(v), 2))
			}
		}
	}
	return both(func(w float64) template.HTML {
		left, step := 134.0, 26.0
		if w == narrow {
			left = 128
		}
		h := step*float64(len(c.Bars)) + 8
		g := newCanvas(w, h, "Share of the possible gain that each policy captures, percent")
		x := axis{lo, hi, left, w - 46}
		for i, b := range c.Bars {
			y := step*float64(i) + 4
			g.name("label", "end", left-8, y+14, b.Name, int((left-8)/7))
			if !drawable(b.Share.Mean) {
				g.text("value", "start", x.at(0)+6, y+14, dash)
				continue
			}
			kind := "bar"
			switch {
			case b.Foresees:
				kind = "bar known"
			case b.Name == ours:
				kind = "bar ours"
			}
			from, to := x.at(0), x.at(b.Share.Mean)
			g.rect(kind, min(from, to), y, math.Abs(to-from), 18, "")
			end := max(from, to)
			if b.Share.Known() && drawable(b.Share.Low, b.Share.High) && b.Share.High > b.Share.Low {
				g.line("whisker", x.at(b.Share.Low), y+9, x.at(b.Share.High), y+9)
				end = max(end, x.at(b.Share.High))
			}
			g.text("value", "start", end+6, y+14, number(100*b.Share.Mean, 0))
		}
		g.line("zero", x.at(0), 0, x.at(0), h)
		return g.done()
	})
}
