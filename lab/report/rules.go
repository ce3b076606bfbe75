package report

import (
	"fmt"
	"math"

	"github.com/presage-router/presage/internal/stat"
)

// Limits of the rules.
const (
	tiny          Value = 0.01 // shares of the base: within it, policies are the same for practical purposes
	negligible    Value = 1e-3 // requests/s or points
	harmful       Value = 0.05 // share of the base
	coarse        Value = 0.10 // gap between rates, in shares of the knee
	leastSeeds          = 5    // for a verdict
	leastForP99         = 10   // for an interval of p99
	leastPairs          = 12   // of blocks, for a live verdict
	mostImbalance Value = 0.10 // of arrivals between arms
	significant   Value = 0.05
	leastESS      Value = 0.05 // of the sample, for an off-policy estimate
	mostWeight    Value = 20
	leastPossible Value = 5   // points between baseline and reference, for captured shares
	leastRequests       = 500 // in a part of the traffic, to be split out
	power               = 0.8
)

// standing is what a difference says of ours.
type standing int

const (
	undecided standing = iota
	better
	worse
	same
	tooFew
)

// stand applies the rules of seeds, of no winner and of no tiny winner to one difference.
func stand(d *Difference) standing {
	switch {
	case d.N < leastSeeds:
		return tooFew
	case isTiny(d):
		return same
	case !hasWinner(d):
		return undecided
	case d.Mean > 0:
		return better
	default:
		return worse
	}
}

// hasWinner: there is no winner where the interval includes 0, or Holm's correction undoes it.
func hasWinner(d *Difference) bool {
	return d.Decided() && (!d.P.Known() || d.P < significant)
}

// isTiny: there is no tiny winner; what lies wholly within 1 % is the same for practical purposes, and
// so is what is next to nothing in its own unit.
func isTiny(d *Difference) bool {
	r := d.relative()
	if d.All != nil {
		r = d.All.over(d.Base)
	}
	return r.Known() && r.Low >= -tiny && r.High <= tiny || d.Known() && d.Low > -negligible && d.High < negligible
}

// settle is the smallest round difference that about more pairs beyond those at hand would show at
// 80 % power, not below 1 % of the base; more is 0 where the scatter is not known. Intervals that may be
// read at any time are wider and need more.
func settle(d *Difference, anyTime bool) (size Value, more int) {
	if !d.SD.Known() || d.SD <= 0 || d.N < 2 {
		return 0, 0
	}
	size = round125(2 * tiny * d.Base)
	if !(size > 0) {
		size = round125(d.SD)
	}
	needed := stat.PairsNeeded
	if anyTime {
		needed = stat.SequenceNeeded
	}
	for range 20 {
		n := needed(float64(size), float64(d.SD), 0.95, power)
		if math.IsNaN(n) || n > 1e6 {
			return 0, 0
		}
		if more = int(n) - d.N; more > 0 {
			return size, upTo2(more)
		}
		size = round125(size / 2)
	}
	return 0, 0
}

// round125 is the nearest of …, 0.5, 1, 2, 5, 10, … ; 0 for what is not above 0.
func round125(v Value) Value {
	if !v.Known() || v <= 0 {
		return 0
	}
	e := math.Pow(10, math.Floor(math.Log10(float64(v))))
	switch m := float64(v) / e; {
	case m < 1.5:
		return Value(e)
	case m < 3.5:
		return Value(2 * e)
	case m < 7.5:
		return Value(5 * e)
	default:
		return Value(10 * e)
	}
}

// upTo2 rounds a count up to two digits.
func upTo2(n int) int {
	e := 1
	for n/e >= 100 {
		e *= 10
	}
	return (n + e - 1) / e * e
}

// harms are the metrics that ours makes worse by more than 5 %. They never head a verdict, and are
// named in its second sentence.
func harms(v *Versus) []Effect {
	var out []Effect
	for _, e := range v.Others {
		if m := e.Metric.of(); m.guard && harm(&e, &m) > harmful {
			out = append(out, e)
		}
	}
	return out
}

// harm is by how much a metric is worse, in shares of its base.
func harm(e *Effect, m *measure) Value {
	base := max(e.Base, m.floor)
	if !e.Mean.Known() || !base.Known() || base <= 0 {
		return 0
	}
	if m.more {
		return -e.Mean / base
	}
	return e.Mean / base
}

// mayNotCarryOver: a difference smaller than the simulator is wrong by may not be found on hardware.
func mayNotCarryOver(d *Difference, off Value) bool {
	r := d.relative()
	return off.Known() && off > 0 && r.Mean.Known() && r.Mean != 0 && max(r.Mean, -r.Mean) < off
}

// simulator is the error that the primary metric is held against: the larger one, as it depends on both.
func (m *Method) simulator() Value {
	if !m.TTFTOff.Known() {
		return m.ITLOff
	}
	if !m.ITLOff.Known() {
		return m.TTFTOff
	}
	return max(m.TTFTOff, m.ITLOff)
}

// kneeReason is why no verdict on the sustained rate can be given; empty: it can.
func kneeReason(k *Knee) string {
	switch {
	case !k.Searched:
		return "no rates were swept, so no sustained rate is known"
	case !k.Reached:
		return "sustained rate not reached: raise the swept rates"
	}
	return ""
}

// isCoarse: the swept rates leave a gap around the knee of more than 10 % of it.
func isCoarse(k *Knee) bool { return k.Searched && k.Reached && k.Gap.Known() && k.Gap > coarse }

// seedsReason is why so few seeds give no verdict; empty: they do.
func seedsReason(n int) string {
	if n < leastSeeds {
		return fmt.Sprintf("%d of %d seeds needed", n, leastSeeds)
	}
	return ""
}

// withoutP99 takes the interval from a p99 of fewer than 10 seeds.
func withoutP99(e Effect) Effect {
	if e.Metric == TTFT99 && e.N < leastForP99 {
		e.Low, e.High = Unknown(), Unknown()
	}
	return e
}

// blocksReason is why live blocks give no verdict; empty: they do.
func blocksReason(l *Live) string {
	if l.Pairs < leastPairs {
		return fmt.Sprintf("%d of %d block pairs needed", l.Pairs, leastPairs)
	}
	if by := imbalance(l.Arrivals); by > mostImbalance {
		return "arrivals differ by " + percent(by, 0) + " between arms"
	}
	if l.AA != nil && l.AA.P.Known() && l.AA.P < significant {
		return "A/A rejects at 5" + thin + "% (" + pValue(l.AA.P) + ")"
	}
	if c := l.CarryOver; c != nil && c.P.Known() && c.P < significant {
		return "blocks carry over into each other (" + pValue(c.P) + ")"
	}
	return ""
}

// pValue is a p-value as it is written.
func pValue(p Value) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return "p = " + number(p, 3)
}

// imbalance is by how much the highest arrival rate of an arm is above the lowest.
func imbalance(arms []Arrival) Value {
	low, high := Value(math.Inf(1)), Value(0)
	for _, a := range arms {
		if a.Rate.Known() {
			low, high = min(low, a.Rate), max(high, a.Rate)
		}
	}
	switch {
	case high <= 0 || !low.Known():
		return 0
	case low <= 0:
		return 1
	}
	return high/low - 1
}

// peekingReason is why live intervals must not be read yet; empty: they may be read at any time.
func peekingReason(l *Live) string {
	if !l.AlwaysValid {
		return "the intervals hold for one look only, at the planned end"
	}
	return ""
}

// sharedReason is why a split of one fleet's traffic allows no claim for the fleet; empty: it does.
func sharedReason(l *Live) string {
	if l.Unit == "block" {
		return ""
	}
	return "split by " + l.Unit + ", the arms share queues"
}

// offPolicyReason is why an estimate from logged decisions is refused; empty: it is not.
func offPolicyReason(o *OffPolicy) string {
	switch {
	case !o.ESS.Known() || o.ESS < leastESS:
		return "effective sample below " + percent(leastESS, 0) + " of the requests"
	case !o.MaxWeight.Known() || o.MaxWeight > mostWeight:
		return "a weight above " + number(mostWeight, 0)
	}
	return ""
}

// tuning is where a policy's weights come from.
func tuning(p *Policy) string {
	if p.Tuning == "" {
		return "untuned"
	}
	return p.Tuning
}

// lost: the run is void where its negative control did not lose. Where seeds are too few for an
// interval, five points are clear enough.
func lost(c *Control) bool {
	switch {
	case c == nil:
		return true
	case c.Behind.Known():
		return c.Behind.Low > 0
	}
	return !(c.Behind.Mean < leastPossible)
}

// capturedReason is why captured shares are not shown; empty: they are.
func capturedReason(c *Captured) string {
	if !c.Possible.Known() || c.Possible < leastPossible {
		return "Between " + c.Baseline + " and " + c.Reference + " lie " + unit(number(c.Possible, 1), "points") +
			"; shares are shown from " + unit(number(leastPossible, 0), "points") + " on."
	}
	return ""
}
