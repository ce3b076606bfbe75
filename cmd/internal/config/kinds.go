package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// scalar reads a plain value, refusing lists, mappings and nothing.
func (d *decoder) scalar(key string, n *node, want string) (string, bool) {
	switch n.form {
	case text, number, boolean:
		return n.value, true
	case null:
		d.fault(n.line, key, "no value", "write "+want+" or remove the key")
	default:
		d.fault(n.line, key, n.form.String()+" where "+want+" is expected", "write one value")
	}
	return "", false
}

func textOption(key, about, want string, dst *string) option {
	return option{key: key, kind: want, def: orNone(*dst), about: about, set: func(d *decoder, key string, n *node) {
		s, ok := d.scalar(key, n, want)
		switch {
		case !ok:
		case n.form != text:
			d.fault(n.line, key, fmt.Sprintf("%s is %s", shown(s), n.form), fmt.Sprintf("quote it: %q", s))
		case strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, unicode.IsControl):
			d.fault(n.line, key, "empty, or with spaces around it or control characters in it", "write "+want)
		default:
			*dst = s
		}
	}}
}

func choiceOption(key, about string, dst *string, among ...string) option {
	kind := strings.Join(among, ", ")
	return option{key: key, kind: kind, def: *dst, about: about, set: func(d *decoder, key string, n *node) {
		if s, ok := d.scalar(key, n, "one of "+kind); ok {
			if !slices.Contains(among, s) {
				d.fault(n.line, key, fmt.Sprintf("%q unknown", shown(s)), oneOf(s, among))
				return
			}
			*dst = s
		}
	}}
}

// oneOf is the remedy for a name that is not among the known ones.
func oneOf(s string, among []string) string {
	do := "one of " + strings.Join(among, ", ")
	if near := meant(s, among); near != "" {
		do = "did you mean " + near + "? " + do
	}
	return do
}

func boolOption(key, about string, dst *bool) option {
	return option{key: key, kind: "true or false", def: strconv.FormatBool(*dst), about: about, set: func(d *decoder, key string, n *node) {
		s, ok := d.scalar(key, n, "true or false")
		if !ok {
			return
		}
		if n.form != boolean {
			d.fault(n.line, key, fmt.Sprintf("%q is neither true nor false", shown(s)), "write true or false, without quotes")
			return
		}
		*dst = s == "true"
	}}
}

func intOption(key, about string, dst *int, least, most int) option {
	kind := fmt.Sprintf("whole number, %d to %d", least, most)
	def := strconv.Itoa(*dst)
	if *dst < least {
		def = "none"
	}
	return option{key: key, kind: kind, def: def, about: about, set: func(d *decoder, key string, n *node) {
		if v, ok := d.whole(key, n, least, most); ok {
			*dst = v
		}
	}}
}

func (d *decoder) whole(key string, n *node, least, most int) (int, bool) {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	s, ok := d.scalar(key, n, want)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	switch {
	case n.quoted:
		d.fault(n.line, key, fmt.Sprintf("%q is text", shown(s)), "write "+want+", without quotes")
	case n.form != number || err != nil:
		d.fault(n.line, key, fmt.Sprintf("%q is no whole number in range", shown(s)), "write "+want)
	case v < least || v > most:
		d.fault(n.line, key, fmt.Sprintf("%d is out of range", v), "write "+want)
	default:
		return v, true
	}
	return 0, false
}

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

// addressOption reads host:port to listen on; optional ones may be "off".
func addressOption(key, about string, dst *string, optional bool) option {
	kind := "host:port to listen on"
	if optional {
		kind += ", or off"
	}
	return option{key: key, kind: kind, def: *dst, about: about, set: func(d *decoder, key string, n *node) {
		want := `an address such as ":9002" or "127.0.0.1:9002"`
		s, ok := d.scalar(key, n, want)
		if !ok {
			return
		}
		if optional && s == "off" {
			*dst = ""
			return
		}
		host, port, err := net.SplitHostPort(s)
		if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || !isHost(host) {
			d.fault(n.line, key, fmt.Sprintf("%q is no host:port", shown(s)), "write "+want)
			return
		}
		*dst = s
	}}
}

// isHost reports whether s is empty, an IP address or a DNS name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil || s == "" {
		return true
	}
	return len(s) <= 253 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
