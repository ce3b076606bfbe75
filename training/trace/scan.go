package trace

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/presage-router/presage/features"
)

// Scanned tells what a scan met.
type Scanned struct {
	Rows    int            // handed out
	Skipped map[string]int // rows that could not be read, by reason
	First   error          // of the first of them; nil: none
}

// Scan hands out the records decided from since on and before until, in order of time; a zero time
// is no limit. Each record belongs to each until it returns. Rows of another version or schema, and
// damaged ones, are skipped and counted. An error of each ends the scan and is returned. Records
// observed since the last flush may be missing, and rows removed meanwhile too.
func (l *Log) Scan(since, until time.Time, each func(*features.Observation) error) (Scanned, error) {
	s := Scanned{Skipped: map[string]int{}}
	err := l.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyMark}, PrefetchValues: true, PrefetchSize: 256})
		defer it.Close()
		if it.Rewind(); since.After(time.Unix(0, 0)) {
			it.Seek(appendKey(nil, since, 0))
		}
		var o features.Observation
		for ; it.Valid(); it.Next() {
			err := it.Item().Value(func(row []byte) error { return parseRow(row, &o) })
			if err != nil {
				s.skip(it.Item().Key(), err)
				continue
			}
			if !until.IsZero() && !o.At.Before(until) {
				return nil
			}
			s.Rows++
			if err := each(&o); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

func (s *Scanned) skip(key []byte, err error) {
	why := "damaged"
	for _, known := range []error{errVersion, errSchema} {
		if errors.Is(err, known) {
			why = known.Error()
		}
	}
	s.Skipped[why]++
	if s.First == nil {
		at := "?"
		if len(key) == keyBytes {
			at = stamp(startOf(hourOf(key)))
		}
		s.First = fmt.Errorf("row of the hour %s: %w", at, err)
	}
}
