package emulator

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// faultPath takes faults as JSON, whatever the state of the server.
const faultPath = "/emulator/fault"

// Fault is something that happens to a server. The kinds are those of the scenarios, and "drop".
type Fault struct {
	Kind    string  `json:"kind"`
	Factor  float64 `json:"factor"`  // slow: of every step; 1 ends it
	Share   float64 `json:"share"`   // fail: of the requests, answered 500 at once; 0 ends it
	Seconds float64 `json:"seconds"` // stall, blind: how long, on the wall clock; blind: 0 until "see"
}

// The kinds of faults.
const (
	FaultSlow   = "slow"   // every step takes Factor times as long
	FaultStall  = "stall"  // no step begins for a while
	FaultFail   = "fail"   // a share of the requests fails fast
	FaultBlind  = "blind"  // the metrics page stays what it is
	FaultSee    = "see"    // ends blind
	FaultKill   = "kill"   // open requests break off, connections are closed without an answer
	FaultRevive = "revive" // ends kill: the server is back with an empty cache
	FaultDrop   = "drop"   // connections are closed without an answer; open requests run on
	FaultTake   = "take"   // ends drop
)

// faults is what is wrong with a server now.
type faults struct {
	rand  *rand.Rand
	share float64
	drop  bool
	dead  bool
	page  []byte    // of a blind server
	until time.Time // it is blind; zero: for good
}

// Inject makes a fault happen. An error names the impossible value and changes nothing.
func (e *Emulator) Inject(f Fault) error {
	const day = 24 * 60 * 60
	if !(f.Seconds >= 0 && f.Seconds <= day) {
		return fmt.Errorf("seconds: %v is not between 0 and %d", f.Seconds, day)
	}
	wall := time.Duration(f.Seconds * float64(time.Second))
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	e.advance(now)
	defer e.rearm()
	switch f.Kind {
	case FaultSlow:
		return e.eng.SetSlowdown(f.Factor)
	case FaultStall:
		e.eng.Stall(now, time.Duration(float64(wall)*e.cfg.Speed))
	case FaultFail:
		if !(f.Share >= 0 && f.Share <= 1) {
			return fmt.Errorf("share: %v is not between 0 and 1", f.Share)
		}
		e.faults.share = f.Share
	case FaultBlind:
		e.faults.page, e.faults.until = e.pageNow(), time.Time{}
		if wall > 0 {
			e.faults.until = time.Now().Add(wall)
		}
	case FaultSee:
		e.faults.page = nil
	case FaultKill:
		e.kill(now)
		e.faults.dead = true
	case FaultRevive:
		if !e.closed {
			e.eng.Revive(now)
			e.eng.Stats(&e.stats)
			e.faults.dead = false
		}
	case FaultDrop, FaultTake:
		e.faults.drop = f.Kind == FaultDrop
	default:
		return fmt.Errorf("kind: %q unknown; one of slow, stall, fail, blind, see, kill, revive, drop, take", f.Kind)
	}
	return nil
}

// fault answers POST /emulator/fault.
func (e *Emulator) fault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(data, &f, json.RejectUnknownMembers(true))
	}
	if err == nil {
		err = e.Inject(f)
	}
	if err != nil {
		refuse(w, badRequest("", "%v", err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// gone reports whether connections get no answer.
func (e *Emulator) gone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.faults.dead || e.faults.drop
}

// fails draws whether a request fails.
func (e *Emulator) fails() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.faults.share > 0 && e.faults.rand.Float64() < e.faults.share
}

// frozen returns the page of a blind server, else nil. e.mu is held.
func (e *Emulator) frozen() []byte {
	if e.faults.page != nil && !e.faults.until.IsZero() && time.Now().After(e.faults.until) {
		e.faults.page = nil
	}
	return e.faults.page
}
