package predictor

import (
	"math"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor/drift"
)

// Every endpoint's log residuals, of TTFT and of step times, are watched for a change. An alarm of
// one endpoint's correction lets it learn fast. Alarms of many endpoints of a class, in one direction
// and soon after each other, are a change of all: what the class learned counts for less and old
// labels fade fast until new ones have taken their place. Forecasts of real engines err for long
// stretches without any change, because load comes in stretches: on recorded requests a sensitive
// detector costs more than it gains, so only lasting shifts of more than a standard deviation count,
// and no endpoint is believed alone.
const (
	hasteGain   = 0.1 // of a correction after an alarm
	hasteLabels = 20
	alarmSlack  = 0.75 // standard deviations
	alarmLimit  = 40
	alarmWindow = 30 * time.Second // alarms that belong together
	heardWithin = time.Minute      // endpoints that count as members of the class

	centreEvery = 50 // labels

	unsettledLabels = 300
	loosen          = 9.0 // factor on variances: deviations thrice as large
	stepLoosen      = 4.0
	lossDoubt       = 0.1 // share of their weight that earlier errors of members keep

	// A correction to slow keeps requests away, and so what could correct it. After idleAfter
	// without a label it fades by half every idleHalf, and the endpoint is tried again.
	idleAfter = 10 * time.Second
	idleHalf  = 30 * time.Second
)

// hurry takes the alarm of a correction.
func (l *Learner) hurry(o *offset, dir drift.Direction) {
	if dir == drift.None || l.opts.Without.Drift {
		return
	}
	l.Counts.Drifts++
	o.haste = hasteLabels
}

// watched is the forecasts of one endpoint under observation.
type watched struct {
	drift.Detector
	at time.Time // of the last label
}

// observe takes the label of what was foretold of an endpoint.
func (l *Learner) observe(s *slot, at *features.Where, target int, y float64, fore *features.Prediction, now time.Time) {
	c := s.class
	if target == TTFT && c.targets[TTFT].labels%centreEvery == 0 {
		l.centre(c)
	}
	c.unsettled[target] = max(0, c.unsettled[target]-1)
	if l.opts.Without.Drift || !fore.Known() {
		return
	}
	w := &s.watched[target]
	w.at = now
	dir := w.Observe(math.Log(y / float64(fore.P50)))
	if dir == drift.None {
		return
	}
	size := 0
	for i := range l.slots {
		if o := &l.slots[i]; o.class == c && now.Sub(o.watched[target].at) <= heardWithin {
			size++
		}
	}
	if size < 2 || !c.alarms[target].Alarm(int(at.Slot), size, dir, now) {
		return
	}
	l.Counts.Drifts++
	if target == TTFT {
		l.centre(c)
	}
	c.unsettle(target)
	for i := range l.slots {
		if o := &l.slots[i]; o.class == c {
			o.watched[target].Rearm()
		}
	}
}

// centre moves what the corrections of a class have in common into its law: nothing else would tell
// them apart, and they would drift away in opposite directions.
func (l *Learner) centre(c *class) {
	var sum, n float64
	for i := range l.slots {
		if o := &l.slots[i]; o.class == c {
			sum += o.first.log
			n++
		}
	}
	if n < 2 {
		return
	}
	mean := sum / n
	for i := range l.slots {
		if o := &l.slots[i]; o.class == c {
			o.first.log -= mean
		}
	}
	c.theta.Scale(math.Exp(mean))
}

// unsettle makes the class doubt what it learned of a target. Mean gaps are known a whole answer
// late, when token counting has long told the step law: the law alone is loosened for them, since
// members made to forget would learn from the answers of the time before.
func (c *class) unsettle(target int) {
	c.drifts++
	c.unsettled[target] = unsettledLabels
	if target == ITL {
		c.phi.Loosen(stepLoosen)
		c.phi.Hasten(forgetFast, unsettledLabels)
		return
	}
	c.theta.Loosen(loosen)
	c.theta.Hasten(forgetFast, unsettledLabels)
	c.targets[target].unsettle()
}

func (t *target) unsettle() {
	t.fast.Loosen(loosen)
	t.slow.Loosen(loosen)
	t.slow.Hasten(forgetFast, unsettledLabels)
	t.cut = t.labels
	for m := range t.losses {
		t.losses[m].sum *= lossDoubt
		t.losses[m].weight *= lossDoubt
	}
}

// idle fades the correction of an endpoint that is believed slow and was not heard of for long. It
// reports whether anything changed. It is to be called several times a second.
func (o *offset) idle(now time.Time) bool {
	since := now.Sub(o.faded)
	o.faded = now
	if o.log <= 0 || o.at.IsZero() || now.Sub(o.at) < idleAfter || since <= 0 || since > maxWindow {
		return false
	}
	o.log *= math.Exp2(-since.Seconds() / idleHalf.Seconds())
	o.haste = hasteLabels // what is learned next tells more than what was
	return true
}
