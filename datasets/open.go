package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Detect names the format of a file by its content; compression by gzip is seen through. The error
// is an [*Error].
func Detect(path string) (Format, error) {
	s, file, err := open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // read only
	return s.detect()
}

// Load reads a whole file, in file order, in the format its content shows. On an error there are no
// records, but the report says how far reading came.
func Load[T Record](path string) ([]T, *Report, error) { return LoadAs[T]("", path) }

// LoadAs is [Load] for a given format; an empty one is detected.
func LoadAs[T Record](f Format, path string) ([]T, *Report, error) {
	var rows []T
	rep, err := ScanAs(f, path, func(r *T) error {
		rows = append(rows, *r)
		return nil
	})
	if err != nil {
		return nil, rep, err
	}
	return rows, rep, nil
}

// Scan reads a file record by record, in file order and constant memory, in the format its content
// shows. Records are each's to keep. An error of each ends the scan and is returned as it is; any
// other error means that what was seen so far is not the whole file. The report is never nil.
func Scan[T Record](path string, each func(*T) error) (*Report, error) { return ScanAs("", path, each) }

// ScanAs is [Scan] for a given format; an empty one is detected.
func ScanAs[T Record](f Format, path string, each func(*T) error) (*Report, error) {
	s, file, err := open(path)
	if err != nil {
		return &Report{File: path, Format: f, Dropped: map[string]int{}}, err
	}
	defer func() { _ = file.Close() }() // read only
	return read(s, f, each)
}

// Read is [Scan] for an open stream; name stands for it in messages.
func Read[T Record](f Format, name string, r io.Reader, each func(*T) error) (*Report, error) {
	s, err := newSource(name, r)
	if err != nil {
		return &Report{File: name, Format: f, Dropped: map[string]int{}}, err
	}
	return read(s, f, each)
}

// Trace is the requests of one file in the order of their arrival.
type Trace struct {
	Report *Report
	Rows   []Row // runs in file order; within a run by arrival, the first at 0
}

// LoadTrace reads a file of requests. Runs whose requests have no arrival times keep file order.
func LoadTrace(path string) (*Trace, error) {
	rows, rep, err := Load[Row](path)
	if err != nil {
		return nil, err
	}
	return &Trace{Report: rep, Rows: byArrival(rows)}, nil
}

// byArrival sorts rows by run (in order of appearance), then arrival, and starts each run at 0.
func byArrival(rows []Row) []Row {
	order := map[string]int{}
	timed, first := []bool{}, []float64{}
	for i := range rows {
		r := &rows[i]
		k, seen := order[r.Run]
		if !seen {
			k = len(order)
			order[r.Run] = k
			timed, first = append(timed, true), append(first, r.Arrival)
		}
		timed[k] = timed[k] && Known(r.Arrival)
		first[k] = min(first[k], r.Arrival)
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		k := order[a.Run]
		if c := cmp.Compare(k, order[b.Run]); c != 0 || !timed[k] {
			return c
		}
		return cmp.Compare(a.Arrival, b.Arrival)
	})
	for i := range rows {
		if k := order[rows[i].Run]; timed[k] {
			rows[i].Arrival -= first[k]
		}
	}
	return rows
}

func open(path string) (*source, *os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &Error{File: path, Reason: reasonOf(err), Cause: err}
	}
	if st, err := file.Stat(); err == nil && st.IsDir() {
		_ = file.Close()
		return nil, nil, &Error{File: path, Reason: "is a directory", Advice: "name one file"}
	}
	s, err := newSource(path, file)
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return s, file, nil
}

// reasonOf is the operating system's reason without the path, which the message names already.
func reasonOf(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func read[T Record](s *source, f Format, each func(*T) error) (*Report, error) {
	s.report.Format = f
	if f == "" {
		found, err := s.detect()
		if err != nil {
			return &s.report, err
		}
		s.report.Format = found
	}
	form, ok := formats[s.report.Format]
	if !ok {
		return &s.report, s.fatal(0, fmt.Sprintf("format %q unknown", s.report.Format), "known: "+known())
	}
	scan, ok := form.scan.(func(*source, func(*T) error) error)
	if !ok {
		return &s.report, s.fatal(0, fmt.Sprintf("a file of %s (format %s) cannot be read as %T records", form.holds, s.report.Format, *new(T)), "")
	}
	err := scan(s, each)
	if err == nil {
		err = s.finish()
	}
	return &s.report, err
}
