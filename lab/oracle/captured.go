package oracle

import (
	"fmt"
	"math"

	"github.com/presage-router/presage/internal/stat"
)

// Captured is how much of a reference's gain over round robin a policy has:
//
//	share = mean(policy - round robin) / mean(reference - round robin),
//
// of attainments paired by seed. Its interval is Fieller's: all shares t for which the mean of
// (policy - round robin) - t*(reference - round robin) is not significantly different from 0 by Student's
// t over seeds. That is exact for normal differences, and unlike the delta method it is as wide as it
// has to be where the denominator is uncertain; the mean of the ratios of single seeds would have no
// expectation. Below two seeds, with less than 5 points of denominator, or where the interval has no end,
// nothing is shown, and Refused says why.
type Captured struct {
	Policy    string      `json:"policy"`
	Reference string      `json:"reference"`
	Seeds     int         `json:"seeds"`
	Gain      float64     `json:"gain"` // of the policy over round robin, in points
	Room      float64     `json:"room"` // of the reference over round robin, in points
	Share     *float64    `json:"captured,omitempty"`
	CI95      *[2]float64 `json:"ci95,omitempty"`
	Refused   string      `json:"refused,omitempty"` // why there is no share
}

// LeastRoom is the denominator, in points, below which no share is shown.
const LeastRoom = 5.0

// capture sets points of attainment against each other, by seed.
func capture(policy, reference string, ours, theirs, base []float64) Captured {
	c := Captured{Policy: policy, Reference: reference, Seeds: len(base)}
	x, y := make([]float64, len(base)), make([]float64, len(base))
	for k := range base {
		x[k], y[k] = ours[k]-base[k], theirs[k]-base[k]
	}
	if len(base) < 2 {
		c.Refused = fmt.Sprintf("not enough data: %d of 2 paired seeds needed", len(base))
		return c
	}
	c.Gain, c.Room = stat.Mean(x), stat.Mean(y)
	if c.Room < LeastRoom {
		c.Refused = fmt.Sprintf("%s gains %.1f points over round robin: below %g there is too little to capture", reference, c.Room, LeastRoom)
		return c
	}
	low, high, ok := fieller(x, y, 0.95)
	if !ok {
		c.Refused = fmt.Sprintf("the gain of %s over round robin is not significantly above 0 over %d seeds: the interval has no end", reference, len(base))
		return c
	}
	share := c.Gain / c.Room
	c.Share, c.CI95 = &share, &[2]float64{low, high}
	return c
}

// fieller is the interval of mean(x)/mean(y), paired; false where it is not bounded.
func fieller(x, y []float64, level float64) (low, high float64, ok bool) {
	n := float64(len(x))
	mx, my := stat.Mean(x), stat.Mean(y)
	var vx, vy, vxy float64 // of the means
	for k := range x {
		dx, dy := x[k]-mx, y[k]-my
		vx, vy, vxy = vx+dx*dx, vy+dy*dy, vxy+dx*dy
	}
	scale := 1 / (n * (n - 1))
	t := stat.StudentT(level, n-1)
	vx, vy, vxy = vx*scale*t*t, vy*scale*t*t, vxy*scale*t*t
	// (mx - s*my)^2 <= vx - 2*s*vxy + s^2*vy
	a, b, c := my*my-vy, mx*my-vxy, mx*mx-vx
	root := b*b - a*c
	if !(a > 0) || root < 0 {
		return 0, 0, false
	}
	return (b - math.Sqrt(root)) / a, (b + math.Sqrt(root)) / a, true
}
