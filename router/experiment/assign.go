package experiment

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/presage-router/presage/router"
)

const (
	holdSalt  = 0x5851f42d4c957f2d
	roundSalt = 0x14057b7ef767814f
)

// assign returns the arm that decides, and the one that is told: len(Arms) where it is held back.
func (e *Experiment) assign(q *router.Query) (arm, as int) {
	e.number++
	if e.trip.Load() != nil {
		return e.control, e.control
	}
	k := e.block(q.Now)
	if e.held != nil {
		held, rank := e.held.at(k)
		if held == 1 {
			return e.control, len(e.opts.Arms)
		}
		k = rank // blocks held back are no part of the others' order
	}
	switch e.opts.Unit {
	case ByBlock:
		arm, _ = e.days.at(k)
		return arm, arm
	case BySession:
		if s := q.Req.Session; s != "" {
			arm = e.draw(xxhash.Sum64String(s))
			return arm, arm
		}
	case ByRequest:
	}
	arm = e.draw(mix(e.number))
	return arm, arm
}

// draw picks an arm by the hash of a unit.
func (e *Experiment) draw(unit uint64) int {
	u := float64(mix(unit^mix(e.opts.Seed))>>11) / (1 << 53)
	for i, bound := range e.bounds {
		if u < bound {
			return i
		}
	}
	i := len(e.bounds) - 1 // shares that add up to a hair less than 1
	for e.opts.Arms[i].Share == 0 {
		i--
	}
	return i
}

// block numbers the blocks of time, from the start of the Unix epoch, so that replicas and restarts
// agree.
func (e *Experiment) block(now time.Time) int64 {
	return floor(now.UnixNano(), int64(e.opts.Length))
}

// washing reports whether a block has begun only just.
func (e *Experiment) washing(now time.Time) bool {
	if e.opts.Unit != ByBlock && e.held == nil || e.trip.Load() != nil {
		return false
	}
	return now.UnixNano()-e.block(now)*int64(e.opts.Length) < int64(e.opts.Washout)
}

// label is the arm that decisions carry.
func (e *Experiment) label(as int, now time.Time) string {
	switch {
	case e.washing(now):
		return ""
	case as == len(e.opts.Arms):
		return HeldBack
	}
	return e.opts.Arms[as].Name
}

// mix is the finaliser of SplitMix64: every bit of the input moves every bit of the output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// floor is the division that rounds down for negative numbers too.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
