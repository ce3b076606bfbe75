package workload

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text is a string, or a block of text.
func (v *node) text() string {
	switch n := v.n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return n.String()
	}
	v.fail("%s where text is wanted", v.show())
	return ""
}

// number is a finite number within [lo, hi].
func (v *node) number(lo, hi float64) float64 {
	if v.n == nil {
		return 0
	}
	x, err := math.NaN(), error(nil)
	switch n := v.n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		x, err = strconv.ParseFloat(strings.ReplaceAll(n.GetToken().Value, "_", ""), 64)
	}
	switch {
	case err != nil || math.IsNaN(x):
		v.fail("%s where a number is wanted", v.show())
		return 0
	case x < lo || x > hi:
		v.fail("%v is not within %v and %v", x, lo, hi)
		return 0
	}
	return x
}

// count is a whole number within [lo, hi].
func (v *node) count(lo, hi int) int {
	x := v.number(float64(lo), float64(hi))
	if x != math.Trunc(x) {
		v.fail("%v is not a whole number", x)
		return 0
	}
	return int(x)
}

// duration is a time with its unit, from 0 to 1000 h.
func (v *node) duration() time.Duration {
	const most = 1000 * time.Hour
	if v.n == nil {
		return 0
	}
	s, ok := v.n.(*ast.StringNode)
	if !ok {
		if _, number := v.n.(*ast.IntegerNode); number {
			v.fail("%s has no unit; write %ss or %sms", v.show(), v.n.String(), v.n.String())
		} else {
			v.fail("%s where a time is wanted, as 30s", v.show())
		}
		return 0
	}
	d, err := time.ParseDuration(s.Value)
	switch {
	case err != nil:
		v.fail("%q is not a time; write it as 250ms, 30s or 5m", s.Value)
	case d < 0 || d > most:
		v.fail("%s is not within 0s and %s", s.Value, most)
	default:
		return d
	}
	return 0
}

// choice is one of the given words; a missing one is "".
func (v *node) choice(words ...string) string {
	s := v.text()
	if v.n != nil && !slices.Contains(words, s) {
		v.fail("%q unknown; %s", s, suggest(s, words))
		return ""
	}
	return s
}

// flag is true or false; a missing one is false.
func (v *node) flag() bool {
	if v.n == nil {
		return false
	}
	b, ok := v.n.(*ast.BoolNode)
	if !ok {
		v.fail("%s where true or false is wanted", v.show())
		return false
	}
	return b.Value
}

// rising is a list of numbers within [lo, hi] that never fall.
func (v *node) rising(lo, hi float64) []float64 {
	var out []float64
	for _, e := range v.list() {
		x := e.number(lo, hi)
		if len(out) > 0 && x < out[len(out)-1] {
			e.fail("%v is below the one before", x)
		}
		out = append(out, x)
	}
	return out
}
