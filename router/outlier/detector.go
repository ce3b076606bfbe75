package outlier

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// What is said of endpoints that are left out of a decision.
const (
	LeftOut   = "ejected"
	SlowStart = "slow start" // a new, recovered or suspect endpoint, not among the candidates this time
)

const (
	maxShare  = 0.3 // of a model's endpoints that may be out at once
	rampTime  = 10 * time.Second
	rampFloor = 0.1 // chance of being a candidate: at the start of the ramp, and of suspects
)

// Detector knows which endpoints work. Its methods are safe for concurrent use. The zero value is
// ready; it must not be copied.
type Detector struct {
	// Changed is told of every ejection, probe and recovery, after the fact and without locks held.
	// It must not block. Nil: nobody is. It is set before the first use.
	Changed func(Change)

	mu       sync.Mutex
	accounts []account // by slot
	round    uint64    // of Screen; accounts of this round are in the fleet
	changes  []Change  // not told yet
	paced    time.Time // when paces were last compared
	last     roomFor   // answer of room
	members  int       // of the last round
}

// Screen takes endpoints that do not work out of a decision's candidates: keep[i] becomes false and
// out[i] says why. It returns the endpoint that the request should try out, which is left out like
// the others, or -1. At least one candidate remains if there was one. Calls do not overlap, and each
// is followed by [Detector.Begin] where the request is dispatched.
func (d *Detector) Screen(now time.Time, snap *fleet.Snapshot, stream bool, rng *rand.Rand, keep []bool, out []string) (probe int) {
	d.mu.Lock()
	defer d.unlock()
	d.meet(now, snap)
	if now.Sub(d.paced) >= paceEvery {
		d.paced = now
		d.pace(now, snap)
	}
	probe = -1
	left := 0
	for i := range snap.States {
		a := &d.accounts[snap.States[i].Slot]
		d.watch(now, a, &snap.States[i])
		if !keep[i] {
			continue
		}
		switch chance := a.chance(now); {
		case a.state == Ejected:
			keep[i], out[i] = false, LeftOut
			if a.probeDue(now, &snap.States[i], stream) && (probe < 0 || a.next.Before(d.accounts[snap.States[probe].Slot].next)) {
				probe = i
			}
		case chance < 1 && rng.Float64() >= chance:
			keep[i], out[i] = false, SlowStart
		default:
			left++
		}
	}
	for _, why := range [...]string{SlowStart, LeftOut} {
		if left == 0 {
			left, probe = readmit(why, keep, out), -1
		}
	}
	return probe
}

// readmit makes those candidates again that were left out for a reason, and returns how many.
func readmit(why string, keep []bool, out []string) (n int) {
	for i := range out {
		if out[i] == why {
			keep[i], out[i] = true, ""
			n++
		}
	}
	return n
}

// meet makes the accounts those of the snapshot's instances.
func (d *Detector) meet(now time.Time, snap *fleet.Snapshot) {
	if n := snap.Slots - len(d.accounts); n > 0 {
		d.accounts = append(d.accounts, make([]account, n)...)
	}
	d.round++
	paged := false
	changed := d.members != len(snap.States)
	d.members = len(snap.States)
	for i := range snap.States {
		paged = paged || !snap.States[i].At.IsZero()
	}
	for i := range snap.States {
		s := &snap.States[i]
		a := &d.accounts[s.Slot]
		changed = changed || a.instance != s.Instance || a.draining != s.Drain
		if a.instance != s.Instance {
			*a = account{instance: s.Instance, name: s.Name, model: s.Model}
			if d.round > 1 { // it joined a running fleet
				a.state, a.since = Warming, now
			}
		}
		a.round, a.draining, a.paged = d.round, s.Drain, paged
	}
	if changed {
		d.readjust(now)
	}
}

// readjust makes suspects of the ejected that are too many since others have left.
func (d *Detector) readjust(now time.Time) {
	for i := range d.accounts {
		a := &d.accounts[i]
		if a.state != Ejected || !d.present(a) || a.draining {
			continue
		}
		if n, out := d.count(a.model); out > most(n) {
			d.spare(now, a)
		}
	}
}

// find returns the account of an instance, or nil when it has left.
func (d *Detector) find(r fleet.Ref) *account {
	if r.Slot < 0 || r.Slot >= len(d.accounts) || d.accounts[r.Slot].instance != r.Instance {
		return nil
	}
	return &d.accounts[r.Slot]
}

// present reports whether the account's instance was in the last snapshot.
func (d *Detector) present(a *account) bool { return a.instance != 0 && a.round == d.round }

// room reports whether one more endpoint of the model may be out.
func (d *Detector) room(model string) bool {
	if l := &d.last; l.known && l.round == d.round && l.model == model {
		return l.room // while many are suspect, each asks at every decision
	}
	n, out := d.count(model)
	d.last = roomFor{round: d.round, model: model, room: out < most(n), known: true}
	return d.last.room
}

// count returns how many endpoints of the model there are, and how many of them are out.
func (d *Detector) count(model string) (n, out int) {
	for i := range d.accounts {
		a := &d.accounts[i]
		if a.model != model || !d.present(a) || a.draining {
			continue
		}
		n++
		if a.state == Ejected {
			out++
		}
	}
	return n, out
}

// most is how many of n endpoints may be out at once.
func most(n int) int {
	if n <= 1 {
		return 0
	}
	return max(1, int(maxShare*float64(n)))
}

// roomFor is the last answer of [Detector.room], which holds for a round, until an endpoint is ejected or
// comes back.
type roomFor struct {
	round       uint64
	model       string
	room, known bool
}

// unlock ends a call: what happened is told without the lock.
func (d *Detector) unlock() {
	changes := d.changes
	d.changes = nil
	d.mu.Unlock()
	if d.Changed == nil {
		return
	}
	for _, c := range changes {
		d.Changed(c)
	}
}
