package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const (
	ahead  = time.Hour       // records decided later than that after now are not believed
	behind = 48 * time.Hour  // nor those decided before; no request lasts so long
	jump   = time.Minute     // of the clock against the monotonic one
	settle = 5 * time.Minute // after opening and after a jump, in which age removes nothing
)

// upkeep removes what is too old and what is too much.
func (l *Log) upkeep(now time.Time) {
	l.watchClock(now)
	part := max(l.opts.Budget/32, 1<<20)
	if now.Sub(l.looked).Abs() < checkAfter && l.fresh < part {
		return
	}
	l.looked, l.fresh = now, 0
	if err := l.removeOld(now); err != nil {
		l.count(func(s *Stats) { s.Problem = fmt.Sprintf("%s: cannot remove old rows: %v", l.dir, err) })
	}
	if err := l.removeMuch(now); err != nil {
		l.count(func(s *Stats) { s.Problem = fmt.Sprintf("%s: cannot keep to the budget: %v", l.dir, err) })
	}
	l.count(func(s *Stats) { s.Oldest, s.Newest = l.ends() })
}

// watchClock compares the wall clock with the monotonic one. After a jump nobody knows which time was
// right, so age removes nothing until the clock has been steady for a while.
func (l *Log) watchClock(now time.Time) {
	d := now.Round(0).Sub(l.last.Round(0)) - now.Sub(l.last)
	l.last = now
	if d.Abs() > jump {
		l.stepped(d, now)
	}
}

func (l *Log) stepped(d time.Duration, now time.Time) {
	l.settled = now.Add(settle)
	l.count(func(s *Stats) {
		s.Steps++
		s.Problem = fmt.Sprintf("%s: the clock jumped by %v to %s; rows keep the times of the clock, and none are removed by age for %v", l.dir, d.Round(time.Second), stamp(now), settle)
	})
}

// removeOld drops the hours older than what is to be kept. Hours ahead of the clock, from a time when
// it was wrong, stay until the budget needs them gone.
func (l *Log) removeOld(now time.Time) error {
	if now.Before(l.settled) {
		return nil
	}
	limit := hourAt(now.Add(-l.opts.Keep))
	var old []uint32
	for _, h := range l.hours {
		if h < limit {
			old = append(old, h)
		}
	}
	return l.drop(old)
}

// removeMuch drops hours until the log is well inside its budget: those ahead of the clock first,
// then the oldest; of the only one that is left, the oldest minutes.
func (l *Log) removeMuch(now time.Time) error {
	const high, low = 0.70, 0.55 // of the budget: compactions need room before they give any
	bytes, err := usage(l.dir)
	if err != nil {
		return err
	}
	for limit := high; float64(bytes) > limit*float64(l.opts.Budget) && len(l.hours) > 0; limit = low {
		h := l.hours[0]
		if last := l.hours[len(l.hours)-1]; startOf(last).After(now.Add(ahead)) {
			h = last
		}
		if len(l.hours) > 1 {
			err = l.drop([]uint32{h})
		} else {
			err = l.dropMinutes(h, 1-low*float64(l.opts.Budget)/float64(bytes))
		}
		if err != nil {
			return err
		}
		if bytes, err = usage(l.dir); err != nil {
			return err
		}
	}
	l.count(func(s *Stats) { s.Bytes = bytes })
	return nil
}

func (l *Log) drop(hours []uint32) error {
	if len(hours) == 0 {
		return nil
	}
	prefixes := make([][]byte, len(hours))
	for i, h := range hours {
		prefixes[i] = hourPrefix(h)
	}
	if err := l.db.DropPrefix(prefixes...); err != nil {
		return err
	}
	l.hours = slices.DeleteFunc(l.hours, func(h uint32) bool { return slices.Contains(hours, h) })
	l.count(func(s *Stats) { s.Removed += uint64(len(hours)) })
	return nil
}

// dropMinutes drops the first minutes of an hour: as many as make that share of those with rows, one
// at least, and the hour with its last minute.
func (l *Log) dropMinutes(hour uint32, share float64) error {
	minutes, err := l.heads(hourPrefix(hour), 1)
	if err != nil {
		return err
	}
	n := max(1, int(share*float64(len(minutes))))
	if n >= len(minutes) {
		return l.drop([]uint32{hour})
	}
	if err := l.db.DropPrefix(minutes[:n]...); err != nil {
		return err
	}
	l.count(func(s *Stats) { s.Removed++ })
	return nil
}

// listHours finds the hours with rows.
func (l *Log) listHours() ([]uint32, error) {
	keys, err := l.heads([]byte{keyMark}, hourBytes-1)
	hours := make([]uint32, len(keys))
	for i, k := range keys {
		hours[i] = hourOf(k)
	}
	return hours, err
}

// heads lists the distinct continuations, by so many bytes, of a prefix.
func (l *Log) heads(prefix []byte, more int) ([][]byte, error) {
	var out [][]byte
	err := l.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		n := len(prefix) + more
		for it.Rewind(); it.Valid(); {
			key := it.Item().KeyCopy(nil)
			if len(key) != keyBytes {
				return fmt.Errorf("a key of %d bytes is none of a trace", len(key))
			}
			head := key[:n:n]
			out = append(out, head)
			next := append(append([]byte(nil), head...), 0xff)
			for len(next) < keyBytes+1 {
				next = append(next, 0xff)
			}
			it.Seek(next)
		}
		return nil
	})
	return out, err
}
