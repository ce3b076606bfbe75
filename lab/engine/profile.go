package engine

import (
	"fmt"
	"math"
	"time"
)

// Profile is the overhead around the kernels of one engine version: the step time's constant parts
// and what a client sees outside of steps. The two of vLLM were tuned on 60 measured stage means.
type Profile struct {
	Name     string
	Step     float64       // c0: microseconds per step
	Seq      float64       // cseq: microseconds per request in the batch
	Frontend time.Duration // alpha0: from the arrival at the server to the scheduler's queue
	Lag      int           // steps by which a batch is fixed ahead of its start: 0 or 1
}

// Async is vLLM with asynchronous scheduling (0.15 and later), the default: the batch of the next
// step is fixed when a step starts, so an arrival waits for the rest of this step and all of the next.
func Async() Profile {
	return Profile{Name: "async", Step: 1000, Seq: 12, Frontend: 8 * time.Millisecond, Lag: 1}
}

// Sync is vLLM without asynchronous scheduling (0.12).
func Sync() Profile {
	return Profile{Name: "sync", Step: 2000, Seq: 45, Frontend: 15 * time.Millisecond}
}

// ParseProfile returns the profile of that name; the empty name is [Async].
func ParseProfile(name string) (Profile, error) {
	for _, p := range []Profile{Async(), Sync()} {
		if name == p.Name {
			return p, nil
		}
	}
	if name == "" {
		return Async(), nil
	}
	return Profile{}, fmt.Errorf("profile %q: unknown; use async or sync", name)
}

func (p *Profile) check() error {
	switch {
	case !within(p.Step, 0, 1e7):
		return fmt.Errorf("profile %s: step %v us: not within 0 and 10 s", p.Name, p.Step)
	case !within(p.Seq, 0, 1e6):
		return fmt.Errorf("profile %s: seq %v us: not within 0 and 1 s", p.Name, p.Seq)
	case p.Frontend < 0 || p.Frontend > time.Hour:
		return fmt.Errorf("profile %s: frontend %v: not within 0 and 1 h", p.Name, p.Frontend)
	case p.Lag < 0 || p.Lag > 1:
		return fmt.Errorf("profile %s: lag %d: neither 0 nor 1", p.Name, p.Lag)
	}
	return nil
}

// within reports whether v is a number in [lo, hi].
func within(v, lo, hi float64) bool { return v >= lo && v <= hi && !math.IsNaN(v) }
