package trace

import "time"

// Stats tell how a log fares. Counts are of records since it was opened.
type Stats struct {
	Written uint64 // on disk
	Full    uint64 // dropped: the queue was full, or the log closed
	Clock   uint64 // dropped: decided far from the clock's time
	Invalid uint64 // dropped: a value that makes no sense
	NoSpace uint64 // dropped: the disk is nearly full
	Failed  uint64 // dropped: the store could not write

	Steps   uint64 // times the clock jumped by more than a minute
	Removed uint64 // hours, or parts of the last one, removed by age or size

	Bytes          int64     // on disk at the last look
	Oldest, Newest time.Time // hours of the first and last rows; zero: there are none
	Problem        string    // the last one; empty: none
}

// Dropped is the number of records that are not in the log.
func (s Stats) Dropped() uint64 { return s.Full + s.Clock + s.Invalid + s.NoSpace + s.Failed }

// Stats returns how the log fares.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Full = l.full.Load()
	return s
}

func (l *Log) count(f func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.stats)
}

// ends are the first and last hours with rows.
func (l *Log) ends() (oldest, newest time.Time) {
	if len(l.hours) == 0 {
		return
	}
	return startOf(l.hours[0]), startOf(l.hours[len(l.hours)-1])
}
