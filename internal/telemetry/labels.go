package telemetry

import (
	"sync"
	"sync/atomic"
)

// OtherLabel stands for the values of a label that are past its cap.
const OtherLabel = "other"

// Labels bounds the values of one metric label: the first Max values keep their names, everything
// later is [OtherLabel]. It is for text that clients choose. Methods are safe for concurrent use.
type Labels struct {
	max     int
	dropped atomic.Uint64
	known   sync.Map // value as given -> label
	mu      sync.Mutex
	open    int // values named as they came
	trusted int // values named by Admit
}

// NewLabels returns a Labels for that many values.
func NewLabels(limit int) *Labels { return &Labels{max: limit} }

// Value returns the label for a value: itself, made safe to show, or [OtherLabel]; "none" for the
// empty one, which would otherwise read as a missing label.
func (l *Labels) Value(s string) string {
	if s == "" {
		return "none"
	}
	if v, ok := l.known.Load(s); ok {
		return v.(string)
	}
	if v, ok := l.add(s, &l.open); ok {
		return v
	}
	l.dropped.Add(1)
	return OtherLabel
}

// Admit gives values their names before clients can use up the cap: those that the configuration or
// the fleet names. As many as the cap are admitted, beside those that come by themselves.
func (l *Labels) Admit(values ...string) {
	for _, s := range values {
		if _, ok := l.known.Load(s); !ok && s != "" {
			l.add(s, &l.trusted)
		}
	}
}

func (l *Labels) add(s string, count *int) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.known.Load(s); ok {
		return v.(string), true
	}
	if *count >= l.max || len(s) > maxText { // a long name would be cut, and might meet another
		return "", false
	}
	*count++
	v := Clean(s)
	l.known.Store(s, v)
	return v, true
}

// Dropped returns how many times [OtherLabel] was given.
func (l *Labels) Dropped() uint64 { return l.dropped.Load() }
