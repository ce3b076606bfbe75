package datasets

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// most is the largest count that a field may hold: more is taken for damage, not for data.
const most = 1e9

// parseCount reads a whole number, also written 76.0. The second result says what is wrong.
func parseCount(v string) (int, string) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		x, why := parseNumber(v)
		switch {
		case why == "not a number" || why == "" && x != math.Trunc(x):
			return 0, "not an integer"
		case why != "":
			return 0, why
		case x > most:
			return 0, "out of range"
		}
		n = int64(x)
	}
	switch {
	case n < 0:
		return 0, "negative"
	case n > most:
		return 0, "out of range"
	}
	return int(n), ""
}

// parseNumber reads a finite number, at least 0.
func parseNumber(v string) (float64, string) {
	x, err := strconv.ParseFloat(v, 64)
	switch {
	case math.IsNaN(x) || err == nil && math.IsInf(x, 0):
		return 0, "not finite"
	case err != nil || !plain(v):
		return 0, "not a number"
	case x < 0:
		return 0, "negative"
	}
	return x, ""
}

// plain rejects what ParseFloat accepts beyond decimal notation: hexadecimal and underscores.
func plain(v string) bool { return !strings.ContainsAny(v, "xX_") }

// parseDate reads a date and time, with a zone or in UTC, as nanoseconds since 1970. Years outside
// 1990-2200 are damage.
func parseDate(v string) (int64, bool) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339, "2006-01-02T15:04:05"} {
		if d, err := time.Parse(layout, v); err == nil {
			return d.UnixNano(), d.Year() >= 1990 && d.Year() <= 2200
		}
	}
	return 0, false
}

// nanoseconds converts seconds of any clock; beyond the year 2200 it reports false.
func nanoseconds(sec float64) (int64, bool) {
	const limit = 7.3e9
	if sec > limit {
		return 0, false
	}
	whole := math.Floor(sec)
	return int64(whole)*1e9 + int64(math.Round((sec-whole)*1e9)), true
}
