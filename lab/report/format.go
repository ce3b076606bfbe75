package report

import (
	"math"
	"strconv"
	"strings"
)

// Signs of the page. The thin space does not break lines.
const (
	thin  = "\u202f"
	minus = "\u2212"
	dash  = "\u2013"
)

// most is the size above which a figure is not written out.
const most = 1e12

// number writes v with so many decimals, thousands set apart; a dash where it is not known.
func number(v Value, decimals int) string {
	if !v.Known() || math.Abs(float64(v)) > most {
		return dash
	}
	s := strconv.FormatFloat(math.Abs(float64(v)), 'f', decimals, 64)
	whole, frac, _ := strings.Cut(s, ".")
	var b strings.Builder
	if v < 0 && strings.Trim(s, "0.") != "" {
		b.WriteString(minus)
	}
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if frac != "" {
		b.WriteString("." + frac)
	}
	return b.String()
}

// signed is number with a plus before what is above 0.
func signed(v Value, decimals int) string {
	s := number(v, decimals)
	if v > 0 && strings.Trim(s, "0.") != "" && s != dash {
		return "+" + s
	}
	return s
}

// noise is how many decimals a figure with such noise deserves: the noise keeps one digit, or two
// where the first is 1.
func noise(of Value) int {
	w := math.Abs(float64(of))
	if !of.Known() || w == 0 {
		return 1
	}
	exp := math.Floor(math.Log10(w))
	d := -int(exp)
	if w/math.Pow(10, exp) < 2 {
		d++
	}
	return min(max(d, 0), 6)
}

// decimals are those of an interval; of a figure without one, three digits.
func (i Interval) decimals() int {
	if i.Known() && i.High > i.Low {
		return min(noise((i.High-i.Low)/2), three(i.Mean)+1)
	}
	return three(i.Mean)
}

// three is how many decimals give a figure three digits.
func three(v Value) int {
	w := math.Abs(float64(v))
	if !v.Known() || w == 0 {
		return 1
	}
	return min(max(2-int(math.Floor(math.Log10(w))), 0), 4)
}

// times is the interval in another unit.
func (i Interval) times(f Value) Interval { return Interval{i.Mean * f, i.Low * f, i.High * f} }

// bracket is "+5.4 [+4.1, +6.8]", or the mean alone.
func (i Interval) bracket() string {
	d := i.decimals()
	if !i.Known() {
		return signed(i.Mean, d)
	}
	return signed(i.Mean, d) + " [" + signed(i.Low, d) + ", " + signed(i.High, d) + "]"
}

// unit puts a thin space and a unit after a figure, but nothing after a dash.
func unit(figure, u string) string {
	if u == "" || figure == dash {
		return figure
	}
	return figure + thin + u
}

// percent is a share in percent.
func percent(v Value, decimals int) string { return unit(number(100*v, decimals), "%") }

// count writes a whole number, millions shortened.
func count(n int) string {
	if n >= 1_000_000 {
		return number(Value(n)/1e6, 1) + thin + "M"
	}
	return number(Value(n), 0)
}

// plural is "1 seed", "2 seeds".
func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return count(n) + " " + of + "s"
}

// list is "a", "a and b", "a, b and c".
func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// factor is a load, as "0.85" or "1".
func factor(v Value) string {
	s := number(v, 2)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
