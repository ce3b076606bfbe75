package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Arrivals is one arrival process. Rates are per second at load 1.
type Arrivals struct {
	Kind string // poisson, gamma, square, spikes, burst or closed

	Rate float64 // poisson, gamma: mean; square: the low rate; spikes: within a spike
	High float64 // square: the high rate
	CV   float64 // gamma: coefficient of variation of the gaps

	Every  time.Duration // square: length of a low and a high phase together; spikes, burst: from one to the next
	Length time.Duration // square: of the high phase, at the end of each period; spikes: of a spike; burst: arrivals fall into it
	First  time.Duration // spikes, burst: start of the first one, counted from the beginning of the traffic

	Count int           // burst: arrivals of each; closed: users
	Ramp  time.Duration // closed: users join evenly over it
	Steps []Step        // closed: more users later
	Think Dist          // closed: seconds from the end of an answer to the user's next request

	Rounds int // closed: requests of each user, with a session conversations; 0: without an end
}

// Step is a number of users that are there from a time on.
type Step struct {
	At    time.Duration
	Users int
}

// times are the instants of an arrival process within [from, until), rising.
type times interface {
	next() (time.Duration, bool)
}

// open returns the instants of an open-loop process at a load.
func (a *Arrivals) open(load float64, from, until time.Duration, rng *rand.Rand) times {
	begin, end := from.Seconds(), until.Seconds()
	switch a.Kind {
	case "gamma":
		// Gamma gaps with shape 1/cv² have the wanted variation at any rate.
		shape := 1 / (a.CV * a.CV)
		return &renewal{at: begin, end: end, gap: func() float64 { return gamma(rng, shape) / shape / (a.Rate * load) }}
	case "square":
		return &phases{rng: rng, at: begin, end: end, rate: func(t float64) (float64, float64) {
			period, high := a.Every.Seconds(), a.Length.Seconds()
			k := math.Floor((t - begin) / period)
			rise, fall := begin+k*period+period-high, begin+(k+1)*period
			if t < rise {
				return a.Rate * load, rise
			}
			return a.High * load, fall
		}}
	case "spikes":
		return &phases{rng: rng, at: begin, end: end, rate: func(t float64) (float64, float64) {
			period, since := a.Every.Seconds(), t-begin-a.First.Seconds()
			if since < 0 {
				return 0, begin + a.First.Seconds()
			}
			k := math.Floor(since / period)
			rise := begin + a.First.Seconds() + k*period
			if t < rise+a.Length.Seconds() {
				return a.Rate * load, rise + a.Length.Seconds()
			}
			return 0, rise + period
		}}
	case "burst":
		return &bursts{rng: rng, n: int(math.Round(float64(a.Count) * load)), at: from + a.First, every: a.Every, length: a.Length, end: until}
	}
	return &renewal{at: begin, end: end, gap: func() float64 { return rng.ExpFloat64() / (a.Rate * load) }}
}

// renewal is a process of independent gaps.
type renewal struct {
	at, end float64 // seconds
	gap     func() float64
}

func (r *renewal) next() (time.Duration, bool) {
	r.at += r.gap()
	return seconds(r.at), r.at < r.end
}

// phases is a Poisson process whose rate changes at known times. A gap that crosses a change is
// drawn anew from there, which the exponential distribution forgives.
type phases struct {
	rng     *rand.Rand
	at, end float64
	rate    func(t float64) (perSecond, until float64)
}

func (p *phases) next() (time.Duration, bool) {
	for p.at < p.end {
		rate, until := p.rate(p.at)
		if until <= p.at {
			until = math.Nextafter(p.at, math.Inf(1)) // rounding at a change of phase
		}
		t := math.Inf(1)
		if rate > 0 {
			t = p.at + p.rng.ExpFloat64()/rate
		}
		if t < until {
			p.at = t
			return seconds(t), t < p.end
		}
		p.at = until
	}
	return 0, false
}

// bursts are groups of arrivals, uniform within a short time.
type bursts struct {
	rng    *rand.Rand
	n      int
	at     time.Duration
	every  time.Duration
	length time.Duration
	end    time.Duration
	due    []time.Duration // of the current burst, the next one last
}

func (b *bursts) next() (time.Duration, bool) {
	for len(b.due) == 0 {
		if b.at >= b.end || b.n == 0 {
			return 0, false
		}
		for range b.n {
			b.due = append(b.due, b.at+time.Duration(b.rng.Float64()*float64(b.length)))
		}
		slices.SortFunc(b.due, func(x, y time.Duration) int { return int(y - x) })
		b.at += b.every
	}
	t := b.due[len(b.due)-1]
	b.due = b.due[:len(b.due)-1]
	return t, t < b.end
}

// joins are the instants at which the users of a closed loop come.
func (a *Arrivals) joins(load float64, from, until time.Duration) times {
	var due []time.Duration
	users := func(n int) int { return int(math.Round(float64(n) * load)) }
	n := users(a.Count)
	for i := range n {
		due = append(due, from+time.Duration(float64(a.Ramp)*float64(i)/float64(n)))
	}
	for _, s := range a.Steps {
		for ; n < users(s.Users); n++ {
			due = append(due, from+s.At)
		}
	}
	due = slices.DeleteFunc(due, func(t time.Duration) bool { return t >= until })
	slices.Sort(due)
	slices.Reverse(due)
	return &bursts{due: due, end: until}
}

// seconds converts, never below 0.
func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0)*1e9, math.MaxInt64/2))
}

// gamma draws from the gamma distribution of the given shape and scale 1 (Marsaglia and Tsang 2000;
// below shape 1 by the power of a uniform number).
func gamma(rng *rand.Rand, shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-rng.Float64(), 1/shape)
		shape++
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := 1 - rng.Float64()
		if math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
