package emulator

import (
	"time"

	"github.com/presage-router/presage/internal/stat"
)

// lateness measures how late the engine was woken: from the time a step was due to the time the
// engine was advanced, on the wall clock.
type lateness struct{ seconds stat.Sketch }

// Late summarises it.
type Late struct {
	Steps         uint64
	P50, P99, Max time.Duration
}

func (l *lateness) add(d time.Duration) { l.seconds.Add(d.Seconds()) }

func (l *lateness) late() Late {
	if l.seconds.N() == 0 {
		return Late{}
	}
	duration := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return Late{
		Steps: l.seconds.N(), P50: duration(l.seconds.Quantile(0.5)),
		P99: duration(l.seconds.Quantile(0.99)), Max: duration(l.seconds.Max()),
	}
}
