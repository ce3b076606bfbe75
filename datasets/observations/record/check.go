package record

import (
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/presage-router/presage/features"
)

// checker turns values of a row back and keeps the first that cannot be.
type checker struct{ err error }

func (c *checker) fail(field string, value any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %.60q: not possible", field, fmt.Sprint(value))
	}
}

func (c *checker) name(field, value string, last int, of func(int) string) int {
	for i := range last + 1 {
		if of(i) == value {
			return i
		}
	}
	c.fail(field, value)
	return 0
}

const (
	maxMillis = 1e9 // 11 days
	maxNumber = 1 << 30
)

func (c *checker) span(field string, v *float64) time.Duration {
	if v == nil {
		return 0
	}
	if !(*v >= 0 && *v <= maxMillis) {
		c.fail(field, *v)
		return 0
	}
	return time.Duration(math.Round(*v * 1e6))
}

func (c *checker) number(field string, v int64) int {
	if v < 0 || v > maxNumber {
		c.fail(field, v)
		return 0
	}
	return int(v)
}

func (c *checker) count(field string, v *int64) int {
	if v == nil {
		return features.Unknown
	}
	return c.number(field, *v)
}

func (c *checker) vector(field string, from numbers, to []float32) {
	if len(from) != len(to) {
		c.fail(field, fmt.Sprintf("%d numbers, not %d", len(from), len(to)))
		return
	}
	copy(to, from)
}

// numbers are floats of which some may be unknown: NaN here and in Parquet, null in JSON.
type numbers []float32

// MarshalJSONTo writes NaN as null.
func (n numbers) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, v := range n {
		var err error
		switch {
		case v != v:
			err = e.WriteToken(jsontext.Null)
		case math.IsInf(float64(v), 0):
			err = fmt.Errorf("%v is no number in JSON", v)
		default:
			err = json.MarshalEncode(e, v)
		}
		if err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}

// UnmarshalJSONFrom reads null as NaN.
func (n *numbers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var list []*float32
	if err := json.UnmarshalDecode(d, &list); err != nil {
		return err
	}
	*n = make(numbers, len(list))
	for i, v := range list {
		(*n)[i] = float32(math.NaN())
		if v != nil {
			(*n)[i] = *v
		}
	}
	return nil
}
