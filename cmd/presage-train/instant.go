package main

import (
	"fmt"
	"time"
)

// instant is a time given on the command line: a date, a time, or how long ago.
type instant struct{ time.Time }

// UnmarshalText reads 2026-05-01, 2026-05-01T12:00:00Z or 24h.
func (i *instant) UnmarshalText(text []byte) error {
	s := string(text)
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		i.Time = time.Now().Add(-d)
		return nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			i.Time = t
			return nil
		}
	}
	return fmt.Errorf("%q is no time; write 2026-05-01, 2026-05-01T12:00:00Z, or 24h for a day ago", s)
}
