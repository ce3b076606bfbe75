package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"
)

// reliability draws the share at or under each foretold quantile.
func reliability(r *Reliability) figure {
	return both(func(w float64) template.HTML {
		const h, bottom = 246.0, 206.0
		g := newCanvas(w, h, "Share of requests at or under each foretold quantile, percent")
		right := min(w-26, 440)
		x, y := axis{0, 1, 44, right}, axis{0, 1, bottom, 16}
		for _, t := range []Value{0, 0.5, 0.9, 1} {
			g.line("grid", x.a, y.at(t), x.b, y.at(t))
			if t != 0.9 {
				g.text("tick", "end", x.a-6, y.at(t)+4, number(100*t, 0))
			}
		}
		g.text("tick", "end", x.a-6, y.at(0.9)+6, "90")
		g.line("diagonal", x.at(0), y.at(0), x.at(1), y.at(1))
		seen := map[Value]bool{}
		for _, c := range r.Curves {
			kind := "chosen"
			if c.Random {
				kind = "random"
			}
			var line []point
			for i, q := range c.Quantiles {
				if i >= len(c.Observed) || !drawable(q, c.Observed[i]) || q < 0 || q > 1 {
					continue
				}
				if !seen[q] {
					seen[q] = true
					anchor := "middle"
					switch { // p90 and p99 are close
					case q >= 0.95:
						anchor = "start"
					case q >= 0.85:
						anchor = "end"
					}
					g.text("tick", anchor, x.at(q), bottom+16, "p"+number(100*q, 0))
				}
				line = append(line, point{x.at(q), y.at(c.Observed[i])})
			}
			g.path("line "+kind, line, 0)
			for _, p := range line {
				g.dot("at "+kind, p.x, p.y, 3.5, "")
			}
		}
		g.text("tick", "end", x.b, h-2, "foretold quantile")
		return g.done()
	})
}

// mostRows are the endpoints that a timeline draws.
const mostRows = 16

// loadChart draws the requests in flight, a row per endpoint, all to one scale.
func loadChart(t *Timeline) figure {
	rows := t.Engines[:min(len(t.Engines), mostRows)]
	top := 1.0
	for _, s := range t.Engines {
		for _, v := range s.Values {
			if drawable(v) {
				top = max(top, float64(v))
			}
		}
	}
	return both(func(w float64) template.HTML {
		const step = 26.0
		left := 96.0
		h := step*float64(len(rows)) + 36
		g := newCanvas(w, h, "Requests in flight over time, by endpoint")
		x := t.axis(left, w-44)
		for i, s := range rows {
			base := step*float64(i+1) + 8
			y := axis{0, top, base, base - step + 4}
			g.line("grid", x.a, base, x.b, base)
			g.name("label", "end", left-8, base-4, s.Name, 12)
			var area []point
			most := Value(0)
			for k, v := range s.Values {
				if k < len(t.Times) && drawable(v, t.Times[k]) {
					area = append(area, point{x.at(t.Times[k]), y.at(v)})
					most = max(most, v)
				}
			}
			g.path("area", area, base)
			g.text("tick", "start", x.b+6, base-4, number(most, 0))
		}
		t.frame(g, x, h)
		return g.done()
	})
}

// heaviest are the series with the highest values, as many as there are styles of lines.
func heaviest(all []Series) []Series {
	peak := func(s Series) Value {
		most := Value(0)
		for _, v := range s.Values {
			if drawable(v) {
				most = max(most, v)
			}
		}
		return most
	}
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b Series) int { return cmp.Compare(peak(b), peak(a)) })
	return out[:min(len(out), styles)]
}

// weightChart draws the weights of scorers.
func weightChart(t *Timeline) figure {
	top := 0.0
	weights := heaviest(t.Weights)
	for _, s := range weights {
		for _, v := range s.Values {
			if drawable(v) {
				top = max(top, float64(v))
			}
		}
	}
	top = max(top, 1e-9)
	return both(func(w float64) template.HTML {
		const h, bottom = 170.0, 134.0
		right := w - 112
		g := newCanvas(w, h, "Weights of scorers over time")
		x, y := t.axis(40, right), axis{0, 1.05 * top, bottom, 10}
		for _, v := range y.ticks(3) {
			g.line("grid", x.a, y.at(v), x.b, y.at(v))
			g.text("tick", "end", x.a-6, y.at(v)+4, number(v, y.decimals(3)))
		}
		var ends []label
		for n, s := range weights {
			var line []point
			for k, v := range s.Values {
				if k >= len(t.Times) || !drawable(v, t.Times[k]) {
					continue
				}
				if p := (point{x.at(t.Times[k]), y.at(v)}); len(line) > 0 && line[len(line)-1].y != p.y {
					line = append(line, point{p.x, line[len(line)-1].y}, p)
				} else {
					line = append(line, p)
				}
			}
			if len(line) > 0 {
				g.path("line "+class("s", n%styles), line, 0)
				ends = append(ends, label{class("t", n%styles), s.Name, line[len(line)-1].y})
			}
		}
		apart(ends, 13, 12, bottom)
		for _, e := range ends {
			g.name("end "+e.class, "start", right+6, e.y+4, e.text, 15)
		}
		t.frame(g, x, h)
		return g.done()
	})
}

func (t *Timeline) axis(a, b float64) axis {
	x := axis{0, 1e-9, a, b}
	for _, v := range t.Times {
		if drawable(v) {
			x.hi = max(x.hi, float64(v))
		}
	}
	return x
}

// frame is the axis of time, and marks.
func (t *Timeline) frame(g *canvas, x axis, h float64) {
	n := 6
	if g.w == narrow {
		n = 3
	}
	for _, v := range x.ticks(n) {
		g.text("tick", "middle", x.at(v), h-12, unit(number(v, x.decimals(n)), "s"))
	}
	for _, m := range t.Marks {
		if drawable(m.At) {
			g.line("mark", x.at(m.At), 2, x.at(m.At), h-26)
			g.text("tick", "middle", x.at(m.At), 9, m.Text)
		}
	}
}

// mostBlocks are those that the calendar draws.
const mostBlocks = 720

// calendar draws the blocks in order of time, one colour per arm.
func calendar(l *Live, ours string) figure {
	blocks := l.Calendar[:min(len(l.Calendar), mostBlocks)]
	draw := func(w float64) template.HTML {
		const cell, left = 14.0, 92.0
		columns := int((w - left) / cell)
		lines := (len(blocks) + columns - 1) / columns
		h := float64(lines)*(cell+4) + 6
		g := newCanvas(w, h, "Blocks in order of time, by arm")
		for i, b := range blocks {
			x, y := left+cell*float64(i%columns), (cell+4)*float64(i/columns)+4
			if i%columns == 0 {
				g.text("tick", "start", 0, y+11, b.Begin.Format("02 Jan 15:04"))
			}
			kind := "block other"
			if b.Arm == ours {
				kind = "block ours"
			}
			g.rect(kind, x, y, cell-2, cell-2, blockTitle(&b))
		}
		return g.done()
	}
	return figure{draw(2 * wide), draw(narrow)}
}

func blockTitle(b *Block) string {
	share := Unknown()
	if b.Requests > 0 {
		share = Value(math.Min(float64(b.Met)/float64(b.Requests), 1))
	}
	return fmt.Sprintf("%s %s, %s: %s of %s within SLO", b.Arm, b.Begin.Format(time.DateTime), b.Length.Round(time.Second), percent(share, 1), plural(b.Requests, "request"))
}
