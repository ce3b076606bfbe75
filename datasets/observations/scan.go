package observations

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/presage-router/presage/datasets/observations/record"
	"github.com/presage-router/presage/features"
)

// Report tells what a file held.
type Report struct {
	File    string
	Format  Format
	Rows    int
	Kept    int
	Dropped map[string]int // rows left out, by reason
	First   error          // why the first of them was; nil: none was
}

// ErrForeign is the reason for which a file is refused that holds no records of finished requests.
var ErrForeign = errors.New("no export of finished requests")

// Detect tells the form of a file by its content; the error is [ErrForeign] for files of others.
func Detect(path string) (Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: cannot be read: %w", path, reason(err))
	}
	defer func() { _ = f.Close() }() // read only
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: cannot be read: %w", path, reason(err))
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet, nil
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"propensity":`)) && bytes.Contains(head, []byte(`"picked":`)):
		return JSONL, nil
	}
	return "", fmt.Errorf("%s: %w; make one with presage-train export", path, ErrForeign)
}

// Scan reads a file record by record, in its order. Records belong to each until it returns; an
// error of each ends the scan and is returned as it is. Rows that cannot be used are counted; other
// errors mean that what was seen is not the whole file. The report is never nil.
func Scan(path string, each func(*features.Observation) error) (*Report, error) {
	rep := &Report{File: path, Dropped: map[string]int{}}
	form, err := Detect(path)
	if err != nil {
		return rep, err
	}
	rep.Format = form
	f, err := os.Open(path)
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be read: %w", path, reason(err))
	}
	defer func() { _ = f.Close() }() // read only
	if form == Parquet {
		err = rep.parquet(f, each)
	} else {
		err = rep.lines(f, each)
	}
	return rep, err
}

// use checks a row and hands it out.
func (rep *Report) use(r *record.Record, each func(*features.Observation) error) error {
	var o features.Observation
	if err := r.Observation(&o); err != nil {
		why := "impossible value"
		if errors.Is(err, record.ErrSchema) {
			why = record.ErrSchema.Error()
		}
		rep.drop(why, err)
		return nil
	}
	rep.Rows++
	rep.Kept++
	return each(&o)
}

func (rep *Report) drop(why string, err error) {
	rep.Rows++
	rep.Dropped[why]++
	if rep.First == nil {
		rep.First = fmt.Errorf("%s: row %d: %w", rep.File, rep.Rows, err)
	}
}

const maxLine = 1 << 20

func (rep *Report) lines(f io.Reader, each func(*features.Observation) error) error {
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 1<<16), maxLine)
	for in.Scan() {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := record.Parse(line)
		if err != nil {
			rep.drop("not a row", err)
			continue
		}
		if err := rep.use(&r, each); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s: row %d: %w", rep.File, rep.Rows+1, err)
	}
	return nil
}

func (rep *Report) parquet(f *os.File, each func(*features.Observation) error) (err error) {
	var own error // of each, which may panic in its own right
	handing := false
	defer func() {
		if p := recover(); p != nil && !handing { // what the library does with damaged files
			err = fmt.Errorf("%s: damaged after row %d: %v", rep.File, rep.Rows, p)
		} else if p != nil {
			panic(p)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%s: cannot be read: %w", rep.File, reason(err))
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: damaged, or not Parquet: %w", rep.File, err)
	}
	if v, ok := file.Lookup(keyVersion); !ok {
		return fmt.Errorf("%s: %w: its metadata lacks %s; make one with presage-train export", rep.File, ErrForeign, keyVersion)
	} else if v != version {
		return fmt.Errorf("%s: version %.20q, this program reads %s; export it again, or as .jsonl", rep.File, v, version)
	}
	if got, want := file.Schema().String(), parquet.SchemaOf(record.Record{}).String(); got != want {
		return fmt.Errorf("%s: its columns are not those of version %s", rep.File, version)
	}
	in := parquet.NewGenericReader[record.Record](file)
	defer func() { _ = in.Close() }() // read only
	rows := make([]record.Record, 256)
	for {
		clear(rows)
		n, err := in.Read(rows)
		for i := range rows[:n] {
			handing = true
			own = rep.use(&rows[i], each)
			handing = false
			if own != nil {
				return own
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: damaged after row %d: %w", rep.File, rep.Rows, err)
		}
	}
	if want := file.NumRows(); int64(rep.Rows) != want {
		return fmt.Errorf("%s: damaged: %d rows of %d", rep.File, rep.Rows, want)
	}
	return nil
}
