package datasets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	maxLine  = 16 << 20 // bytes of one line, or of one string of a JSON document
	headSize = 64 << 10 // bytes looked at to find the format
)

// source is one input: decompressed, checked for its encoding, counted in lines and records.
type source struct {
	report Report
	in     *bufio.Reader // decompressed
	zipped bool
	line   int // last line read, from 1
	limit  int // maxLine, except in tests
	buf    []byte
	torn   bool // the last line ended without a line feed

	clock clock
}

// newSource looks at the beginning of a stream: compression, byte-order marks, emptiness.
func newSource(name string, r io.Reader) (*source, error) {
	s := &source{report: Report{File: name, Dropped: map[string]int{}}, in: bufio.NewReaderSize(r, headSize), limit: maxLine}
	head, err := s.in.Peek(4)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, s.broken(err)
	}
	if kind, ok := compression(head); ok {
		return nil, s.fatal(0, "compressed with "+kind, "decompress it, or compress it with gzip")
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(s.in)
		if err != nil {
			return nil, s.broken(err)
		}
		s.in, s.zipped = bufio.NewReaderSize(z, headSize), true
	}
	head, err = s.in.Peek(headSize)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, s.broken(err)
	}
	if bytes.HasPrefix(head, []byte{0xfe, 0xff}) || bytes.HasPrefix(head, []byte{0xff, 0xfe}) {
		return nil, s.fatal(0, "not UTF-8: begins with a UTF-16 byte-order mark", "convert it: iconv -f UTF-16 -t UTF-8")
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		return nil, s.fatal(0, fmt.Sprintf("not UTF-8: NUL at byte %d", i), "if it is UTF-16, convert it: iconv -f UTF-16LE -t UTF-8")
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		if _, err := s.in.Discard(3); err != nil {
			return nil, s.broken(err)
		}
		head = head[3:]
	}
	if len(bytes.TrimSpace(head)) == 0 && len(head) < headSize {
		return nil, s.fatal(0, "empty file", "")
	}
	return s, nil
}

// compression recognises the compressions that are not read.
func compression(head []byte) (string, bool) {
	for magic, kind := range map[string]string{"\x28\xb5\x2f\xfd": "zstd", "BZh": "bzip2", "\xfd7zX": "xz", "PK\x03\x04": "zip", "PAR1": "parquet"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return kind, true
		}
	}
	return "", false
}

// next reads the next line that is not blank, without its end. It returns nil, nil at the end of the
// input. The line is valid until the next call. Errors are fatal.
func (s *source) next() ([]byte, error) {
	for {
		s.buf = s.buf[:0]
		s.line++
		for {
			part, err := s.in.ReadSlice('\n')
			s.buf = append(s.buf, part...)
			if len(s.buf) > s.limit {
				return nil, s.fatal(s.line, "longer than "+size(s.limit), "is it a text file?")
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if errors.Is(err, io.EOF) {
				s.torn = true
				if len(s.buf) == 0 {
					return nil, nil
				}
				break
			}
			if err != nil {
				return nil, s.broken(err)
			}
			break
		}
		if bytes.IndexByte(s.buf, 0) >= 0 {
			return nil, s.fatal(s.line, "holds a NUL byte", "the file is damaged: get it again")
		}
		line := bytes.TrimRight(s.buf, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
		if s.torn {
			return nil, nil
		}
	}
}

// keep counts a record that is handed out.
func (s *source) keep() {
	s.report.Rows++
	s.report.Kept++
	if s.clock.late {
		s.report.Reordered++
	}
	s.clock.late = false
}

// drop counts a record that is left out and remembers the first faulty one.
func (s *source) drop(f fault) {
	s.report.Rows++
	s.report.Dropped[f.reason]++
	s.clock.late = false
	if s.report.First == nil && !f.filtered {
		s.report.First = &Error{File: s.report.File, Line: f.line, Record: f.record, Field: f.field, Value: shorten(f.value), Reason: f.reason, Advice: "row left out"}
	}
}

// finish says whether a file that was read to its end holds anything.
func (s *source) finish() error {
	switch {
	case s.report.Rows == 0:
		return s.fatal(0, "no rows", "")
	case s.report.Kept == 0:
		e := s.fatal(0, fmt.Sprintf("none of its %d rows can be used: %s", s.report.Rows, s.report.reasons()), "")
		if f := s.report.First; f != nil {
			e.Line, e.Record, e.Field, e.Value = f.Line, f.Record, f.Field, f.Value
		}
		return e
	}
	return nil
}

// fatal is an error that makes the whole file unusable.
func (s *source) fatal(line int, reason, advice string) *Error {
	return &Error{File: s.report.File, Line: line, Reason: reason, Advice: advice}
}

// broken explains a read error. A cut stream says how many rows came before the cut.
func (s *source) broken(err error) *Error {
	e := &Error{File: s.report.File, Line: s.line, Reason: err.Error(), Cause: err}
	if errors.Is(err, io.ErrUnexpectedEOF) || s.zipped {
		e.Reason = fmt.Sprintf("%v: the compressed stream is damaged after %d rows", err, s.report.Rows)
		e.Advice = "get the file again; a part of a trace is never taken for the whole"
	}
	return e
}

func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// shorten makes a value fit for a message: valid UTF-8, at most 60 bytes.
func shorten(v string) string {
	const most = 60
	v = strings.ToValidUTF8(v, "\ufffd")
	if len(v) <= most {
		return v
	}
	cut := most
	for !utf8.RuneStart(v[cut]) {
		cut--
	}
	return v[:cut] + "…"
}

// fault is what is wrong with one record.
type fault struct {
	line     int
	record   int // in a JSON document, instead of line
	field    string
	value    string
	reason   string
	filtered bool // sound, but not wanted: a failed request, a span of another service
}

// clock turns the file's own times into arrivals and notices records out of order.
type clock struct {
	started bool
	origin  int64 // nanoseconds
	latest  int64
	late    bool // the current record is before an earlier one
}

// at notes the time of the current record, nanoseconds of the file's own clock, and returns
// seconds since the first record.
func (c *clock) at(ns int64) float64 {
	if !c.started {
		c.started, c.origin, c.latest = true, ns, ns
	}
	c.late = ns < c.latest
	c.latest = max(c.latest, ns)
	return float64(ns-c.origin) / 1e9
}
