package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

func durationOption(key, about string, dst *time.Duration, least, most time.Duration) option {
	kind := fmt.Sprintf("duration, %s to %s", span(least), span(most))
	return option{key: key, kind: kind, def: span(*dst), about: about, set: func(d *decoder, key string, n *node) {
		if v, ok := d.duration(key, n); ok {
			if v < least || v > most {
				d.fault(n.line, key, n.value+" is out of range", fmt.Sprintf("write a time from %s to %s", span(least), span(most)))
				return
			}
			*dst = v
		}
	}}
}

func (d *decoder) duration(key string, n *node) (time.Duration, bool) {
	const want = "a time with its unit, such as 200ms, 5s or 2m"
	s, ok := d.scalar(key, n, want)
	if !ok {
		return 0, false
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		do := "write " + want
		if ms := strconv.FormatFloat(v*1000, 'f', -1, 64); v >= 0 && v <= 1e9 {
			do = fmt.Sprintf("write %ss or %sms", s, ms)
		}
		d.fault(n.line, key, fmt.Sprintf("%q has no unit", shown(s)), do)
		return 0, false
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		d.fault(n.line, key, fmt.Sprintf("%q is no time", shown(s)), "write "+want)
		return 0, false
	}
	return v, true
}

// span prints a duration as one would write it.
func span(v time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if v != 0 && v%u.unit == 0 {
			return strconv.FormatInt(int64(v/u.unit), 10) + u.name
		}
	}
	return v.String()
}

var sizes = []struct {
	unit string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

func sizeOption(key, about string, dst *int64, least, most int64) option {
	kind := fmt.Sprintf("size, %s to %s", bytesText(least), bytesText(most))
	return option{key: key, kind: kind, def: bytesText(*dst), about: about, set: func(d *decoder, key string, n *node) {
		const want = "a size with its unit, such as 64MiB, 512KiB or 1GiB"
		s, ok := d.scalar(key, n, want)
		if !ok {
			return
		}
		v, err := size(s)
		switch {
		case err != nil && isNumber(s):
			d.fault(n.line, key, fmt.Sprintf("%q has no unit", shown(s)), fmt.Sprintf("write %sMiB or %sB", s, s))
		case err != nil:
			d.fault(n.line, key, fmt.Sprintf("%q is no size", shown(s)), "write "+want)
		case v < least || v > most:
			d.fault(n.line, key, s+" is out of range", fmt.Sprintf("write a size from %s to %s", bytesText(least), bytesText(most)))
		default:
			*dst = v
		}
	}}
}

func isNumber(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// size reads a whole number followed by a unit. Values past int64 are clamped to its largest.
func size(s string) (int64, error) {
	for _, u := range sizes {
		digits, ok := strings.CutSuffix(s, u.unit)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		switch {
		case err != nil:
			return 0, fmt.Errorf("cannot parse %q: %w", s, err)
		case v > math.MaxInt64/u.n:
			return math.MaxInt64, nil
		case v < math.MinInt64/u.n:
			return math.MinInt64, nil
		}
		return v * u.n, nil
	}
	return 0, fmt.Errorf("cannot parse %q: no unit", s)
}

func bytesText(v int64) string {
	for _, u := range sizes {
		if strings.Contains(u.unit, "i") && v >= u.n && v%u.n == 0 {
			return strconv.FormatInt(v/u.n, 10) + u.unit
		}
	}
	return strconv.FormatInt(v, 10) + "B"
}
