package report

import (
	"cmp"
	"html/template"
	"math"
	"slices"
)

// styles is the number of classes for lines: s0 is ours.
const styles = 6

// figure is one drawing for wide and one for narrow pages.
type figure struct{ Wide, Narrow template.HTML }

const (
	wide   = 510.0
	narrow = 326.0
)

func both(draw func(w float64) template.HTML) figure { return figure{draw(wide), draw(narrow)} }

// style is the class of a policy's line: ours is first, the others follow in the order of the table.
func (c *Comparison) style(policy string) int {
	n := 1
	for _, p := range c.Policies {
		if p.Name == c.Ours {
			continue
		}
		if p.Name == policy {
			return 1 + (n-1)%(styles-1)
		}
		n++
	}
	return 0
}

func class(prefix string, n int) string { return prefix + string(rune('0'+n%10)) }

// curves are those with at least two points that can be drawn.
func (c *Comparison) curves() []Curve {
	var out []Curve
	for _, k := range c.Curves {
		var points []Rate
		for _, p := range k.Points {
			if drawable(p.Offered, p.Goodput) && p.Offered >= 0 && p.Goodput >= 0 {
				points = append(points, p)
			}
		}
		slices.SortStableFunc(points, func(a, b Rate) int { return cmp.Compare(a.Offered, b.Offered) })
		if len(points) >= 2 && points[0].Offered < points[len(points)-1].Offered {
			out = append(out, Curve{k.Policy, points})
		}
	}
	return out
}

// rateChart draws goodput against offered rate, the ray of 90 % and a ring at each sustained rate.
func rateChart(c *Comparison, curves []Curve) figure {
	low, high, top := math.Inf(1), 0.0, 0.0
	for _, k := range curves {
		for _, p := range k.Points {
			low, high, top = min(low, float64(p.Offered)), max(high, float64(p.Offered)), max(top, float64(p.Goodput))
		}
	}
	for _, p := range c.Policies { // rings belong into the picture
		if r := p.Sustained.Mean; drawable(r) && p.Knee.Reached {
			high, top = max(high, float64(r)), max(top, 0.9*float64(r))
		}
	}
	top = max(top, 1e-9)
	return both(func(w float64) template.HTML {
		right := w - 8
		if w == wide {
			right = w - 122 // for names
		}
		const h, bottom = 284.0, 240.0
		g := newCanvas(w, h, "Goodput against offered rate, requests per second, by policy")
		x, y := axis{low - 0.04*(high-low), high, 40, right}, axis{0, 1.08 * top, bottom, 22}
		for _, t := range y.ticks(5) {
			g.line("grid", x.a, y.at(t), x.b, y.at(t))
			g.text("tick", "end", x.a-6, y.at(t)+4, number(t, y.decimals(5)))
		}
		for _, t := range x.ticks(5) {
			g.text("tick", "middle", x.at(t), bottom+16, number(t, x.decimals(5)))
		}
		g.text("tick", "start", 2, 12, "goodput, req/s")
		g.text("tick", "end", x.b, h-4, "offered, req/s")
		ray(g, x, y)
		var ends []label
		for _, k := range slices.Backward(curves) { // ours on top
			n := c.style(k.Policy)
			var line []point
			for _, p := range k.Points {
				line = append(line, point{x.at(p.Offered), y.at(p.Goodput)})
			}
			g.path("line "+class("s", n), line, 0)
			last := line[len(line)-1]
			ends = append(ends, label{class("t", n), k.Policy, last.y})
		}
		for _, p := range slices.Backward(c.Policies) {
			if r := p.Sustained.Mean; drawable(r) && r > 0 && p.Knee.Reached && float64(r) >= x.lo && float64(r) <= x.hi {
				g.dot("ring "+class("s", c.style(p.Name)), x.at(r), y.at(0.9*r), 5, p.Name+" sustains "+unit(number(r, p.Sustained.decimals()), "req/s"))
			}
		}
		if w == wide {
			apart(ends, 14, 14, bottom)
			for _, e := range ends {
				g.name("end "+e.class, "start", right+6, e.y+4, e.text, 16)
			}
		}
		return g.done()
	})
}

// ray is the line on which 90 % of the offered rate is within SLO.
func ray(g *canvas, x, y axis) {
	from, to := max(x.lo, 0), min(x.hi, y.hi/0.9)
	if to <= from {
		return
	}
	g.line("slo", x.at(Value(from)), y.at(Value(0.9*from)), x.at(Value(to)), y.at(Value(0.9*to)))
	at := Value(from + 0.55*(to-from)) // below the ray there is room
	g.text("slotext", "start", x.at(at)+8, y.at(0.9*at)+12, "90"+thin+"% in SLO")
}

// label is a text beside a chart.
type label struct {
	class, text string
	y           float64
}

// apart moves labels up and down until they are so far from each other, within top and bottom.
func apart(l []label, gap, top, bottom float64) {
	slices.SortStableFunc(l, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := range l {
		if i > 0 {
			l[i].y = max(l[i].y, l[i-1].y+gap)
		}
	}
	floor := bottom
	for i := len(l) - 1; i >= 0; i-- {
		l[i].y = max(min(l[i].y, floor), top)
		floor = l[i].y - gap
	}
}
