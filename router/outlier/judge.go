package outlier

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

const (
	rowLimit   = 3    // failures in a row
	rateFails  = 5    // least failures within about 10 s that make a rate
	rateExcess = 0.15 // share of failures above that of the others
	darkPages  = 3    // scrapes in a row that got no answer
	darkQuiet  = time.Second
)

// Start describes a dispatched request.
type Start struct {
	At       time.Time
	Stream   bool  // server-sent events were asked for
	Probe    bool  // [Detector.Screen] asked for it
	Uncached int64 // prompt tokens the endpoint must compute
	Ahead    int64 // the same of the requests that waited there already
}

// End describes how a request ended.
type End struct {
	Cause  fleet.Cause
	Status int // HTTP; 0: none seen
	Tokens int // that came
}

// verdict is what the end of a request says about its endpoint.
type verdict uint8

const (
	nothing verdict = iota // the client left, or the fault was ours
	alive                  // it answered, for better or worse
	good
	bad
)

func (e *End) verdict() verdict {
	switch e.Cause {
	case fleet.Complete:
		return good
	case fleet.UpstreamError:
		if e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError || e.Status == http.StatusNotImplemented {
			return alive // the request was at fault
		}
		return bad
	case fleet.Truncated:
		if e.Tokens > 0 { // it may be how this engine ends its answers
			return alive
		}
		return bad
	case fleet.Open, fleet.ClientGone, fleet.Expired, fleet.Internal:
	}
	return nothing
}

func (e *End) String() string {
	switch {
	case e.Status >= http.StatusBadRequest:
		return "status " + strconv.Itoa(e.Status)
	case e.Status > 0:
		return "an error in the answer"
	}
	return "no answer"
}

// Begin notes that a request was dispatched. Calls of Screen and Begin do not overlap.
func (d *Detector) Begin(r fleet.Ref, b *Start) {
	d.mu.Lock()
	defer d.unlock()
	a := d.find(r)
	if a == nil {
		return
	}
	if b.Stream {
		a.quiet.begin(b.At, b.Uncached)
	}
	if b.Probe {
		a.probed, a.open, a.opened = b.At, true, b.Stream
		a.next = b.At.Add(max(probeEvery, a.wait())) // until its outcome says otherwise
		a.probes++
	}
}

// First notes the first token of a request.
func (d *Detector) First(now time.Time, r fleet.Ref, b *Start) {
	d.mu.Lock()
	defer d.unlock()
	a := d.find(r)
	if a == nil {
		return
	}
	a.quiet.life(now)
	if b.Stream {
		a.quiet.end(now)
		a.quiet.learn(now.Sub(b.At), b.Ahead+b.Uncached)
	}
	if a.state == Ejected && b.At.After(a.since) {
		d.recover(now, a)
	}
}

// Moved notes that the gateway sent a request, of which no token had come, to another endpoint than
// was decided: it had passed over the first.
func (d *Detector) Moved(now time.Time, from, to fleet.Ref, b *Start) {
	d.mu.Lock()
	defer d.unlock()
	if a := d.find(from); a != nil {
		if b.Stream {
			a.quiet.end(now)
		}
		d.bad(now, a, b, "passed over by the gateway")
	}
	if a := d.find(to); a != nil && b.Stream {
		a.quiet.begin(now, b.Uncached)
	}
}

// Finish notes the end of a request.
func (d *Detector) Finish(now time.Time, r fleet.Ref, b *Start, e *End) {
	d.mu.Lock()
	defer d.unlock()
	a := d.find(r)
	if a == nil {
		return
	}
	v := e.verdict()
	if v != nothing {
		a.quiet.life(now)
	}
	if b.Stream && e.Tokens == 0 {
		a.quiet.end(now)
		if v == nothing && a.quiet.waiting == 0 && now.Sub(b.At) < leastPatience {
			a.quiet.life(now) // it may only just have been too slow for a hasty client
		}
	}
	switch v {
	case good:
		d.good(now, a, b)
	case bad:
		d.bad(now, a, b, e.String())
	case nothing, alive:
		if b.Probe && a.state == Ejected && e.Tokens == 0 {
			a.open = false
		}
	}
}

func (d *Detector) good(now time.Time, a *account, b *Start) {
	a.fade(now)
	a.all++
	if b.At.After(a.lastFail) {
		a.row = 0
	}
	switch {
	case (a.state == Ejected || a.state == Suspect) && b.At.After(a.since): // a probe, or it was the only candidate
		d.recover(now, a)
	case a.state != Ejected && a.dark:
		a.blind = true
	}
}

func (d *Detector) bad(now time.Time, a *account, b *Start, what string) {
	a.fade(now)
	a.fails++
	a.all++
	a.row++
	a.lastFail = now
	switch {
	case a.state == Ejected:
		if b.Probe {
			d.miss(now, a, what)
		}
	case a.state == Warming && a.again && b.At.After(a.since):
		d.eject(now, a, Failures, "failed again after it had recovered: "+what)
	case a.row >= rowLimit:
		d.eject(now, a, Failures, fmt.Sprintf("%d failures in a row, the last: %s", a.row, what))
	case a.fails >= rateFails && a.fails/a.all >= rateExcess+d.others(now, a):
		d.eject(now, a, Rate, fmt.Sprintf("%.0f %% of its requests failed lately, the last: %s", 100*a.fails/a.all, what))
	}
}

// others is the share of failures among the other endpoints of the account's model.
func (d *Detector) others(now time.Time, a *account) float64 {
	fails, all := 0., 0.
	for i := range d.accounts {
		if o := &d.accounts[i]; o != a && o.model == a.model && d.present(o) {
			o.fade(now)
			fails += o.fails
			all += o.all
		}
	}
	if all == 0 {
		return 0
	}
	return fails / all
}

// watch looks at what time alone brings about.
func (d *Detector) watch(now time.Time, a *account, s *fleet.State) {
	if a.dark = s.Unreachable; !a.dark {
		a.blind = false
	}
	if a.state == Working && a.strike == 0 && !a.dark && a.quiet.waiting == 0 && a.quiet.silent == 0 {
		return // as nearly all are, nearly always
	}
	a.quiet.life(s.LastToken)
	switch a.state {
	case Ejected:
		switch age := now.Sub(a.probed); {
		case !a.open:
		case a.opened && age >= a.quiet.limit(s.TTFT):
			d.miss(now, a, "no first token")
		case age >= slowestWait:
			a.open = false // its end tells when it comes
		}
		if a.cause == Silent && !a.open && s.LastToken.After(a.since) && s.LastToken.After(a.probed) {
			a.next = earlier(a.next, later(a.since, a.probed).Add(probeEvery)) // what hung moves again
		}
		return
	case Suspect:
		if d.room(a.model) {
			d.eject(now, a, a.cause, a.detail)
			return
		}
	case Warming:
		if now.Sub(a.since) >= rampTime {
			a.state, a.since, a.again = Working, now, false
		}
	case Working:
		if a.strike > 0 && now.Sub(a.since) >= forgiveness {
			a.strike = 0
		}
	}
	if long := a.quiet.long(now); long >= leastSilence && long >= a.quiet.limit(s.TTFT) {
		if a.state == Suspect && a.cause == Silent {
			return // said already, and there is still no room
		}
		d.eject(now, a, Silent, fmt.Sprintf("no token for %.1f s with %d requests waiting for their first", long.Seconds(), a.quiet.waiting))
		return
	}
	if s.Unreachable && s.Errors >= darkPages && a.paged && !a.blind && now.Sub(s.LastToken) >= darkQuiet {
		d.eject(now, a, Unreachable, fmt.Sprintf("its metrics page could not be reached %d times in a row", s.Errors))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
