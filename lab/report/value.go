package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// Value is a figure. NaN and the infinities mean that it is not known: null in JSON, a dash on the
// page. The zero Value is 0, a figure like any other; what is not known must be set to [Unknown].
type Value float64

// Unknown is the Value of what was not measured.
func Unknown() Value { return Value(math.NaN()) }

// Known reports whether there is a figure.
func (v Value) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON implements [json.Marshaler].
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON implements [json.Unmarshaler]; null is unknown.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Unknown()
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*v = Value(f)
	return nil
}

// Interval is an estimate with its 95 % confidence interval, in the unit of what is estimated. Without
// bounds both are unknown.
type Interval struct {
	Mean Value `json:"mean"`
	Low  Value `json:"low"`
	High Value `json:"high"`
}

// Known reports whether mean and bounds are known, in their order, and of a size that can be written.
func (i Interval) Known() bool {
	return i.Mean.Known() && i.Low.Known() && i.High.Known() && i.Low <= i.Mean && i.Mean <= i.High && -most <= i.Low && i.High <= most
}

// side is the side of 0 on which all of a known interval lies: 1, -1, or 0 where it includes 0.
func (i Interval) side() int {
	switch {
	case i.Low > 0:
		return 1
	case i.High < 0:
		return -1
	}
	return 0
}

// Point is an estimate without an interval.
func Point(mean float64) Interval { return Interval{Value(mean), Unknown(), Unknown()} }

// Decided reports whether the interval lies on one side of 0. One that is not known decides nothing.
func (i Interval) Decided() bool { return i.Known() && i.side() != 0 }

// farthest is the largest share of a base that says anything.
const farthest = 100

// over is the interval in shares of a base; unknown where the base is next to nothing.
func (i Interval) over(base Value) Interval {
	if !base.Known() || base <= 0 || max(i.Mean, -i.Mean, -i.Low, i.High) > farthest*base {
		return Interval{Unknown(), Unknown(), Unknown()}
	}
	return Interval{i.Mean / base, i.Low / base, i.High / base}
}

var (
	_ json.Marshaler   = Value(0)
	_ json.Unmarshaler = (*Value)(nil)
)
