package request

import (
	"math"
	"strconv"
	"time"
)

// The bounds of an SLO.
const (
	minSLO = time.Millisecond
	maxSLO = time.Hour
)

// slo reads a header of milliseconds: a positive finite number, taken into [1 ms, 1 h]. Anything
// else is no SLO and reported as not ok; an absent header is none and ok.
func slo(v []byte) (d time.Duration, ok bool) {
	if v == nil {
		return 0, true
	}
	if len(v) > maxDigits {
		return 0, false
	}
	for _, c := range v { // no hexadecimal, no underscores, no names of numbers
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return 0, false
		}
	}
	ms, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(ms > 0) || math.IsInf(ms, 0) {
		return 0, false
	}
	ms = min(ms, float64(maxSLO/time.Millisecond))
	return max(time.Duration(ms*float64(time.Millisecond)), minSLO), true
}
