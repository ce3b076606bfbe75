package training

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"time"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/training/evaluate"
	"github.com/presage-router/presage/training/trace"
)

// Records are logged requests in order of time, from logs and files that are read again for each scan.
type Records struct {
	Since, Until time.Time      // limits of the decisions; zero: none
	Skipped      map[string]int // rows left out, by reason, of the last scan

	sources []source
}

// source is one log or file.
type source struct {
	name string
	scan func(each func(*features.Observation) error) (skipped map[string]int, err error)
	end  func() error
}

// OpenRecords opens trace logs (directories), exports of them, and measurements with arrival times, to
// be read in the order given. The caller closes them. An error tells what is wrong with which.
func OpenRecords(paths ...string) (*Records, error) {
	r := new(Records)
	for _, path := range paths {
		s, err := r.open(path)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.sources = append(r.sources, s)
	}
	return r, nil
}

func (r *Records) open(path string) (source, error) {
	s := source{name: path, end: func() error { return nil }}
	if info, err := os.Stat(path); err != nil {
		return s, fmt.Errorf("%s: cannot be read: %w", path, errors.Unwrap(err))
	} else if info.IsDir() {
		return r.log(path)
	}
	_, err := observations.Detect(path)
	if err == nil {
		s.scan = func(each func(*features.Observation) error) (map[string]int, error) {
			rep, err := observations.Scan(path, each)
			return rep.Dropped, err
		}
		return s, nil
	}
	if !errors.Is(err, observations.ErrForeign) {
		return s, err
	}
	parts, err := evaluate.Load(path)
	if err != nil {
		return s, err
	}
	s.scan = func(each func(*features.Observation) error) (map[string]int, error) {
		skipped := map[string]int{}
		for _, p := range parts {
			all, err := p.Observations()
			if err != nil {
				return skipped, err
			}
			for reason, n := range p.Dropped {
				skipped[reason] += n
			}
			for i := range all {
				if err := each(&all[i]); err != nil {
					return skipped, err
				}
			}
		}
		return skipped, nil
	}
	if len(parts) > 1 {
		return s, fmt.Errorf("%s: holds %d units of other hardware or models, each with a clock of its own; fit takes one: cut the file", path, len(parts))
	}
	return s, nil
}

func (r *Records) log(dir string) (source, error) {
	if !trace.Exists(dir) {
		return source{}, fmt.Errorf("%s: holds no trace; name the directory of trace.dir in presage.yaml", dir)
	}
	l, err := trace.Open(dir, trace.Options{Keep: math.MaxInt64, Budget: math.MaxInt64}) // reading removes nothing
	if err != nil {
		if errors.Is(err, trace.ErrLocked) {
			err = fmt.Errorf("%s: in use by another process, as a running service holds its log: ask it for the rows, as in curl -fsS -o trace.jsonl 'http://127.0.0.1:9090/trace?since=24h' (listen.admin), and name that file, or stop it: %w", dir, trace.ErrLocked)
		}
		return source{}, err
	}
	return source{name: dir, end: l.Close, scan: func(each func(*features.Observation) error) (map[string]int, error) {
		s, err := l.Scan(r.Since, r.Until, each)
		return s.Skipped, err
	}}, nil
}

// Close closes the logs.
func (r *Records) Close() error {
	var all error
	for _, s := range r.sources {
		all = errors.Join(all, s.end())
	}
	return all
}

// Scan hands out the records within the limits, in order of time. Each belongs to each until it
// returns; an error of each ends the scan and is returned. Records that go back in time are an error.
func (r *Records) Scan(each func(*features.Observation) error) error {
	r.Skipped = map[string]int{}
	var last time.Time
	for _, s := range r.sources {
		n := 0
		skipped, err := s.scan(func(o *features.Observation) error {
			n++
			if !r.Since.IsZero() && o.At.Before(r.Since) || !r.Until.IsZero() && !o.At.Before(r.Until) {
				return nil
			}
			if o.At.Before(last) {
				return fmt.Errorf("%s: record %d: decided at %s, before the one before it at %s; records must be in order of time: name the files in order, oldest first",
					s.name, n, o.At.UTC().Format(time.RFC3339Nano), last.UTC().Format(time.RFC3339Nano))
			}
			last = o.At
			return each(o)
		})
		for reason, n := range skipped {
			r.Skipped[reason] += n
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// digest hashes what models learn from.
type digest struct {
	h   hash.Hash
	buf []byte
}

func newDigest() *digest { return &digest{h: sha256.New()} }

func (d *digest) add(o *features.Observation) {
	b := append(append(d.buf[:0], o.Endpoint...), 0)
	for _, v := range o.X {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	for _, v := range []int64{o.At.UnixNano(), int64(o.TTFT), int64(o.ITL), int64(o.E2E), int64(o.Cause), int64(o.Status), int64(o.OutputTokens), int64(o.CachedTokens)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	d.h.Write(b)
	d.buf = b
}

func (d *digest) sum() string { return hex.EncodeToString(d.h.Sum(nil))[:16] }
