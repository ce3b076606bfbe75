package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// canvas draws one SVG. Colours and strokes are classes of the style sheet; text is escaped.
type canvas struct {
	b    strings.Builder
	w, h float64
}

func newCanvas(w, h float64, label string) *canvas {
	c := &canvas{w: w, h: h}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`, px(w), px(h), px(w), px(h), html.EscapeString(clean(label)))
	return c
}

// clean takes out what XML does not allow and browsers would not show.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// px is a coordinate to a tenth; one that cannot be is 0.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (c *canvas) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, px(x), px(y), px(max(w, 0)), px(max(h, 0)))
	c.end("rect", title)
}

func (c *canvas) dot(class string, x, y, r float64, title string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, class, px(x), px(y), px(r))
	c.end("circle", title)
}

func (c *canvas) end(tag, title string) {
	if title == "" {
		c.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&c.b, "><title>%s</title></%s>", html.EscapeString(clean(title)), tag)
}

// text anchors at start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, px(x), px(y), html.EscapeString(clean(s)))
}

// name is text of at most so many characters, whole in its tooltip.
func (c *canvas) name(class, anchor string, x, y float64, s string, most int) {
	short := cut(clean(s), most)
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s"><title>%s</title>%s</text>`, class, anchor, px(x), px(y), html.EscapeString(clean(s)), html.EscapeString(short))
}

// cut shortens to so many characters, the middle left out.
func cut(s string, most int) string {
	r := []rune(s)
	if len(r) <= most || most < 4 {
		return s
	}
	head := (most - 1) * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}

type point struct{ x, y float64 }

// path joins points; closed down to a base line where there is one.
func (c *canvas) path(class string, points []point, base float64) {
	if len(points) == 0 {
		return
	}
	fmt.Fprintf(&c.b, `<path class="%s" d="`, class)
	for i, p := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		c.b.WriteString(verb + px(p.x) + " " + px(p.y))
	}
	if base > 0 {
		fmt.Fprintf(&c.b, "L%s %sL%s %sZ", px(points[len(points)-1].x), px(base), px(points[0].x), px(base))
	}
	c.b.WriteString(`"/>`)
}

// done is the drawing. All text in it is escaped.
func (c *canvas) done() template.HTML {
	c.b.WriteString("</svg>")
	return template.HTML(c.b.String()) //nolint:gosec // made here, text escaped
}

// axis maps [lo, hi] to pixels [a, b].
type axis struct{ lo, hi, a, b float64 }

// at is the pixel of a value, at the nearer end for one outside.
func (x axis) at(v Value) float64 {
	if !(x.hi > x.lo) {
		return x.a
	}
	f := (float64(v) - x.lo) / (x.hi - x.lo)
	return x.a + min(max(f, 0), 1)*(x.b-x.a)
}

// ticks are round values within the axis, about n of them.
func (x axis) ticks(n int) []Value {
	step := float64(round125(Value((x.hi - x.lo) / float64(max(n, 1)))))
	if !(step > 0) {
		return []Value{Value(x.lo)}
	}
	var out []Value
	for k := math.Ceil(x.lo/step - 1e-9); k*step <= x.hi+1e-9*step && len(out) < 50; k++ {
		out = append(out, Value(k*step))
	}
	return out
}

// decimals are those that tell the ticks apart.
func (x axis) decimals(n int) int {
	step := float64(round125(Value((x.hi - x.lo) / float64(max(n, 1)))))
	if !(step > 0) {
		return 0
	}
	return min(max(-int(math.Floor(math.Log10(step)+1e-9)), 0), 6)
}

// drawable reports whether a value can be put on an axis.
func drawable(vs ...Value) bool {
	for _, v := range vs {
		if !v.Known() || math.Abs(float64(v)) > most {
			return false
		}
	}
	return true
}
