package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// codec writes or reads the fields of one row in order: one description of the row serves both ways,
// so that what is written can be read. The first error sticks.
type codec struct {
	buf     []byte
	pos     int // reading
	reading bool
	err     error
}

const (
	maxText = 1 << 10 // bytes of a name; longer ones are cut when written
	maxSpan = 240 * time.Hour
)

func (c *codec) fail(name, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: "+format, append([]any{name}, args...)...)
	}
}

func (c *codec) uvarint(name string, v *uint64) {
	if c.err != nil {
		return
	}
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	u, n := binary.Uvarint(c.buf[c.pos:])
	if n <= 0 {
		c.fail(name, "the row ends, or holds no number, at byte %d", c.pos)
		return
	}
	*v, c.pos = u, c.pos+n
}

// integer is a number between low and high.
func integer[T ~int | ~int8 | ~int32 | ~int64](c *codec, name string, v *T, low, high int64) {
	n := int64(*v)
	u := uint64(n<<1) ^ uint64(n>>63)
	if !c.reading && (n < low || n > high) {
		c.fail(name, "%d: not within %d and %d", n, low, high)
	}
	c.uvarint(name, &u)
	if !c.reading || c.err != nil {
		return
	}
	if n = int64(u>>1) ^ -int64(u&1); n < low || n > high {
		c.fail(name, "%d: not within %d and %d", n, low, high)
		return
	}
	*v = T(n)
}

// natural is a number between 0 and high.
func natural[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *codec, name string, v *T, high uint64) {
	u := uint64(*v)
	if !c.reading && u > high {
		c.fail(name, "%d: above %d", u, high)
	}
	c.uvarint(name, &u)
	if !c.reading || c.err != nil {
		return
	}
	if u > high {
		c.fail(name, "%d: above %d", u, high)
		return
	}
	*v = T(u)
}

func (c *codec) text(name string, v *string) {
	s := *v
	if !c.reading && len(s) > maxText {
		s = s[:maxText]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && len(s) > maxText-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	n := uint64(len(s))
	c.uvarint(name, &n)
	if c.err != nil {
		return
	}
	if !c.reading {
		c.buf = append(c.buf, s...)
		return
	}
	if n > maxText || n > uint64(len(c.buf)-c.pos) {
		c.fail(name, "text of %d bytes: longer than %d, or than the row", n, maxText)
		return
	}
	*v = string(c.buf[c.pos : c.pos+int(n)])
	c.pos += int(n)
}

func (c *codec) flag(name string, v *bool) {
	var u uint8
	if *v {
		u = 1
	}
	natural(c, name, &u, 1)
	*v = u == 1
}

// bits32 is a float of any value, NaN meaning unknown.
func (c *codec) bits32(name string, v *float32) {
	if c.err != nil {
		return
	}
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(*v))
		return
	}
	if len(c.buf)-c.pos < 4 {
		c.fail(name, "the row ends at byte %d", len(c.buf))
		return
	}
	*v = math.Float32frombits(binary.LittleEndian.Uint32(c.buf[c.pos:]))
	c.pos += 4
}

// real32 is a finite float.
func (c *codec) real32(name string, v *float32) {
	if x := float64(*v); !c.reading && (math.IsNaN(x) || math.IsInf(x, 0)) {
		c.fail(name, "%v: not finite", x)
	}
	c.bits32(name, v)
	if x := float64(*v); c.reading && (math.IsNaN(x) || math.IsInf(x, 0)) {
		c.fail(name, "%v: not finite", x)
	}
}

// real64 is a finite float.
func (c *codec) real64(name string, v *float64) {
	if !c.reading && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
		c.fail(name, "%v: not finite", *v)
	}
	if c.err != nil {
		return
	}
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
		return
	}
	if len(c.buf)-c.pos < 8 {
		c.fail(name, "the row ends at byte %d", len(c.buf))
		return
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(c.buf[c.pos:]))
	c.pos += 8
	if math.IsNaN(x) || math.IsInf(x, 0) {
		c.fail(name, "%v: not finite", x)
		return
	}
	*v = x
}

func (c *codec) span(name string, v *time.Duration) { integer(c, name, v, 0, int64(maxSpan)) }

// instant is a time near another; the zero time is kept.
func (c *codec) instant(name string, v *time.Time, near time.Time) {
	known := !v.IsZero()
	c.flag(name, &known)
	if !known {
		if c.reading {
			*v = time.Time{}
		}
		return
	}
	d := v.Sub(near)
	integer(c, name, &d, math.MinInt64, math.MaxInt64)
	if c.reading && c.err == nil {
		*v = near.Add(d)
	}
}
