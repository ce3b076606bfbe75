package drift

import (
	"fmt"
	"math"
	"time"
)

// Share is the part of a class whose alarms make an alarm of the class.
const Share = 0.3

// Class tells from the alarms of its endpoints that all of them have changed. It is not safe for
// concurrent use. Make it with [NewClass].
type Class struct {
	window time.Duration
	alarms []alarm // the last by endpoint
}

type alarm struct {
	at  time.Time
	dir Direction
}

// NewClass returns a class without alarms, in which alarms at most window apart, a positive duration,
// belong together.
func NewClass(window time.Duration) (*Class, error) {
	if window <= 0 {
		return nil, fmt.Errorf("window %v: not positive", window)
	}
	return &Class{window: window}, nil
}

// Alarm takes the alarm of an endpoint, by its index within the class or the fleet, and reports whether
// it makes an alarm of a class with size endpoints: at least 30 % of them, and two unless it has but
// one, raised an alarm in the same direction within the window that ends now. The alarms are used up
// then. Calls go forward in time; each takes time proportional to the largest index so far, which
// alarms, being rare, can afford.
func (c *Class) Alarm(endpoint, size int, dir Direction, now time.Time) bool {
	if dir == None || endpoint < 0 {
		return false
	}
	for len(c.alarms) <= endpoint {
		c.alarms = append(c.alarms, alarm{})
	}
	c.alarms[endpoint] = alarm{now, dir}
	n := 0
	for _, a := range c.alarms {
		if a.dir == dir && now.Sub(a.at) <= c.window {
			n++
		}
	}
	if n < quorum(size) {
		return false
	}
	clear(c.alarms)
	return true
}

// quorum is the number of endpoints whose alarms make an alarm of the class.
func quorum(size int) int {
	if size <= 1 {
		return 1
	}
	return max(2, int(math.Ceil(Share*float64(size)-1e-9)))
}

// Forget drops the alarm of an endpoint that has left.
func (c *Class) Forget(endpoint int) {
	if endpoint >= 0 && endpoint < len(c.alarms) {
		c.alarms[endpoint] = alarm{}
	}
}
