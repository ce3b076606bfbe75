package trace

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/presage-router/presage/features"
)

// Options are the limits of a log. The zero value of a field means its default.
type Options struct {
	Keep    time.Duration    // age at which rows go, by whole hours; default 72 h
	Budget  int64            // bytes on disk, at least [MinBudget]; default 10 GiB
	Reserve int64            // bytes of the disk left to others, below which nothing is written; default 256 MiB
	Queue   int              // records that may wait to be written; default 8192
	Now     func() time.Time // default time.Now
}

// MinBudget is the smallest budget that the store can keep to.
const MinBudget = 64 << 20

const (
	batchRows  = 1024
	batchAfter = 250 * time.Millisecond
	checkAfter = 10 * time.Second // between two looks at age and size
)

// Log is an open log. It is safe for concurrent use.
type Log struct {
	dir   string
	opts  Options
	db    *badger.DB
	queue chan features.Observation
	flush chan chan error
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	err   error // of closing

	full atomic.Uint64

	mu    sync.Mutex
	stats Stats // but for Full

	// Of the writer alone.
	batch   []entry
	seq     uint32
	hours   []uint32 // with rows, ascending
	fresh   int64    // bytes written since the last look
	looked  time.Time
	last    time.Time // clock at the last batch
	settled time.Time // until when age removes nothing
	free    func(string) (int64, error)
}

type entry struct{ key, value []byte }

// Open opens the log in a directory, which is made if need be. The caller closes it.
func Open(dir string, o Options) (*Log, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("%s: cannot keep a trace here: %w; choose a directory that can be written, or switch the trace off", dir, reason(err))
	}
	db, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, opts: o, db: db, queue: make(chan features.Observation, o.Queue), flush: make(chan chan error),
		stop: make(chan struct{}), done: make(chan struct{}), free: free,
	}
	if l.hours, err = l.listHours(); err != nil {
		_ = db.Close() // the first error tells more
		return nil, fmt.Errorf("%s: cannot read the trace: %w; move it away to begin a new one", dir, err)
	}
	now := o.Now()
	l.last, l.settled = now, now.Add(settle)
	l.stats.Oldest, l.stats.Newest = l.ends()
	l.stats.Bytes, _ = usage(dir)
	go l.run()
	return l, nil
}

func (o *Options) defaults() error {
	if o.Keep == 0 {
		o.Keep = 72 * time.Hour
	}
	if o.Budget == 0 {
		o.Budget = 10 << 30
	}
	if o.Reserve == 0 {
		o.Reserve = 256 << 20
	}
	if o.Queue == 0 {
		o.Queue = 8192
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Keep < time.Hour:
		return fmt.Errorf("trace.keep: %v: less than an hour; write 1h or more", o.Keep)
	case o.Budget < MinBudget:
		return fmt.Errorf("trace.budget: %d bytes: too small for the store; write 64MiB or more", o.Budget)
	case o.Reserve < 0 || o.Queue < 1:
		return fmt.Errorf("trace: reserve %d, queue %d: not positive", o.Reserve, o.Queue)
	}
	return nil
}

// Observe takes a record to be written. It copies o, never blocks, and counts the record as dropped
// where the queue is full or the log closed.
func (l *Log) Observe(o *features.Observation) {
	select {
	case <-l.stop:
		l.full.Add(1)
		return
	default:
	}
	select {
	case l.queue <- *o:
	default:
		l.full.Add(1)
	}
}

// Flush returns when all records observed before are on disk, or with the reason why some are not.
func (l *Log) Flush() error {
	answer := make(chan error, 1)
	select {
	case l.flush <- answer:
		return <-answer
	case <-l.done:
		return fmt.Errorf("%s: the trace is closed", l.dir)
	}
}

// Close writes what waits and closes the log. Later records are dropped.
func (l *Log) Close() error {
	l.once.Do(func() {
		close(l.stop)
		<-l.done
		l.err = l.db.Close()
	})
	return l.err
}

// run is the one goroutine that writes.
func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(batchAfter)
	defer tick.Stop()
	for {
		select {
		case o := <-l.queue:
			l.add(&o)
			if len(l.batch) >= batchRows {
				_ = l.commit() // counted
			}
		case answer := <-l.flush:
			answer <- l.drain()
			l.upkeep(l.opts.Now())
		case <-tick.C:
			_ = l.commit() // counted
			l.upkeep(l.opts.Now())
		case <-l.stop:
			_ = l.drain() // counted
			return
		}
	}
}

// drain writes all that is in the queue now, and returns the first error.
func (l *Log) drain() error {
	var first error
	for n := len(l.queue); n > 0; n-- {
		o := <-l.queue
		l.add(&o)
		if len(l.batch) >= batchRows {
			if err := l.commit(); first == nil {
				first = err
			}
		}
	}
	if err := l.commit(); first == nil {
		first = err
	}
	return first
}

// add puts a record into the batch.
func (l *Log) add(o *features.Observation) {
	if d := o.At.Sub(l.opts.Now()); d > ahead || d < -behind {
		l.count(func(s *Stats) {
			s.Clock++
			s.Problem = fmt.Sprintf("%s: a record decided at %s is far from the clock, %s; it is left out: check the clock of this machine", l.dir, stamp(o.At), stamp(l.opts.Now()))
		})
		return
	}
	value, err := appendRow(make([]byte, 0, 640), o)
	if err != nil {
		l.count(func(s *Stats) {
			s.Invalid++
			s.Problem = fmt.Sprintf("%s: a record is left out: %v", l.dir, err)
		})
		return
	}
	l.seq++
	l.batch = append(l.batch, entry{appendKey(nil, o.At, l.seq), value})
}

// commit writes the batch and waits until it is on disk.
func (l *Log) commit() error {
	if len(l.batch) == 0 {
		return nil
	}
	n := uint64(len(l.batch))
	err := l.room()
	if err == nil {
		err = l.write()
		if err != nil {
			l.count(func(s *Stats) { s.Failed += n; s.Problem = fmt.Sprintf("%s: cannot write the trace: %v", l.dir, err) })
		}
	} else {
		l.count(func(s *Stats) { s.NoSpace += n; s.Problem = err.Error() })
	}
	if err == nil {
		for _, e := range l.batch {
			l.fresh += int64(len(e.key) + len(e.value))
			h := hourOf(e.key)
			if i, found := slices.BinarySearch(l.hours, h); !found {
				l.hours = slices.Insert(l.hours, i, h)
			}
		}
		l.count(func(s *Stats) { s.Written += n; s.Oldest, s.Newest = l.ends() })
	}
	clear(l.batch)
	l.batch = l.batch[:0]
	return err
}

func (l *Log) write() error {
	wb := l.db.NewWriteBatch()
	defer wb.Cancel()
	for _, e := range l.batch {
		if err := wb.Set(e.key, e.value); err != nil {
			return err
		}
	}
	return wb.Flush()
}

// room refuses a batch while the disk is nearly full: the store maps its files, and a mapped page
// without a place on disk ends the process.
func (l *Log) room() error {
	n, err := l.free(l.dir)
	if err != nil {
		return fmt.Errorf("%s: cannot tell the free space: %w", l.dir, reason(err))
	}
	if n < l.opts.Reserve {
		return fmt.Errorf("%s: %d MiB of the disk are free, %d are left to others; records are dropped: free some space or lower trace.budget", l.dir, n>>20, l.opts.Reserve>>20)
	}
	return nil
}
