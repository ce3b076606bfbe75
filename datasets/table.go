package datasets

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// table reads comma-separated values with a header line. A quoted field may not span lines, so that
// one stray quote costs one row, not the rest of the file. Cells are read by column with the
// methods below; the first fault of a row sticks, later reads of it return zero values.
type table struct {
	s       *source
	columns []string
	cells   []string
	bad     fault
}

// column is the place of a column in the header, or -1.
type column int

// openTable reads the header.
func openTable(s *source) (*table, error) {
	line, err := s.next()
	if err != nil {
		return nil, err
	}
	t := &table{s: s}
	if !t.split(line) || !utf8.Valid(line) {
		return nil, s.fatal(s.line, "header is not comma-separated text", "")
	}
	t.columns = slices.Clone(t.cells)
	for i, c := range t.columns {
		t.columns[i] = strings.TrimSpace(c)
		if j := slices.Index(t.columns[:i], t.columns[i]); j >= 0 && t.columns[i] != "" {
			return nil, s.fatal(s.line, "column "+t.columns[i]+" appears twice", "")
		}
	}
	return t, nil
}

// need finds columns by name. One whose name ends in "?" may be missing; its place is then -1.
func (t *table) need(names ...string) ([]column, error) {
	at := make([]column, len(names))
	if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(t.columns, strings.TrimSuffix(name, "?")) }) {
		return nil, t.s.fatal(0, "no header: want a "+names[0]+" column", "the first line must name the columns")
	}
	for i, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		at[i] = column(slices.Index(t.columns, name))
		if at[i] < 0 && !optional {
			return nil, t.s.fatal(t.s.line, "missing column "+name, "the header has "+strings.Join(t.columns, ", "))
		}
	}
	return at, nil
}

// scanTable hands out what record makes of each row. The columns are named as for [table.need].
func scanTable[T Record](s *source, each func(*T) error, columns []string, record func(t *table, c []column) T) error {
	t, err := openTable(s)
	if err != nil {
		return err
	}
	c, err := t.need(columns...)
	if err != nil {
		return err
	}
	for {
		more, err := t.next()
		if !more {
			return err
		}
		r := record(t, c)
		if !t.ok() {
			continue
		}
		s.keep()
		if err := each(&r); err != nil {
			return err
		}
	}
}

// next goes to the next row of the right shape; rows of another shape are dropped. It returns false
// at the end of the file.
func (t *table) next() (bool, error) {
	for {
		line, err := t.s.next()
		if line == nil || err != nil {
			return false, err
		}
		t.bad = fault{line: t.s.line}
		switch {
		case !utf8.Valid(line):
			t.fail("", string(line), "not UTF-8")
		case !t.split(line):
			t.fail("", string(line), "bad quotes")
		case len(t.cells) != len(t.columns):
			t.fail("", fmt.Sprintf("%d fields, the header has %d", len(t.cells), len(t.columns)), "field count")
		default:
			return true, nil
		}
		t.s.drop(t.bad)
	}
}

// ok ends the reading of a row: it reports whether the row is sound and drops it otherwise.
func (t *table) ok() bool {
	if t.bad.reason != "" {
		t.s.drop(t.bad)
		return false
	}
	return true
}

// fail notes a fault of the row, unless it has one already.
func (t *table) fail(field, value, reason string) {
	if t.bad.reason == "" {
		t.bad.field, t.bad.value, t.bad.reason = field, value, reason
	}
}

// skip leaves the row out without calling it faulty.
func (t *table) skip(reason string) {
	if t.bad.reason == "" {
		t.bad.reason, t.bad.filtered = reason, true
	}
}

func (t *table) name(c column) string { return t.columns[c] }

// text is a cell as it stands; of a missing column "".
func (t *table) text(c column) string {
	if c < 0 || t.bad.reason != "" {
		return ""
	}
	return strings.TrimSpace(t.cells[c])
}

// required is a cell that may not be empty, of a column that may not be missing.
func (t *table) required(c column) (string, bool) {
	if c < 0 {
		t.fail("", "", "missing column")
		return "", false
	}
	v := t.text(c)
	if v == "" {
		t.fail(t.name(c), "", "empty field")
	}
	return v, v != ""
}

// count is a whole number, at least 0.
func (t *table) count(c column) int {
	v, ok := t.required(c)
	if !ok {
		return 0
	}
	n, why := parseCount(v)
	if why != "" {
		t.fail(t.name(c), v, why)
	}
	return n
}

// maybeCount is a count, Unknown where the cell is empty or the column missing.
func (t *table) maybeCount(c column) int {
	if t.text(c) == "" {
		return Unknown
	}
	return t.count(c)
}

// number is a finite number, at least 0.
func (t *table) number(c column) float64 {
	v, ok := t.required(c)
	if !ok {
		return 0
	}
	x, why := parseNumber(v)
	if why != "" {
		t.fail(t.name(c), v, why)
	}
	return x
}

// maybe is a number, NaN where the cell is empty or the column missing.
func (t *table) maybe(c column) float64 {
	if t.text(c) == "" {
		return math.NaN()
	}
	return t.number(c)
}

// maybeMs is a number of milliseconds as seconds, NaN where the cell is empty or the column missing.
func (t *table) maybeMs(c column) float64 { return t.maybe(c) / 1e3 }

// percent is a percentage as a share, NaN where the cell is empty or the column missing.
func (t *table) percent(c column) float64 { return t.maybe(c) / 100 }

// dayTime is a clock of month, day and time without a year, in nanoseconds of a leap year.
func (t *table) dayTime(c column) int64 {
	v, ok := t.required(c)
	if !ok {
		return 0
	}
	d, err := time.Parse("2006-01-02 15:04:05", "2000-"+v)
	if err != nil {
		t.fail(t.name(c), v, "bad timestamp")
	}
	return d.UnixNano()
}

// date is a point in time, in nanoseconds since 1970.
func (t *table) date(c column) int64 {
	v, ok := t.required(c)
	if !ok {
		return 0
	}
	ns, good := parseDate(v)
	if !good {
		t.fail(t.name(c), v, "bad timestamp")
	}
	return ns
}

// seconds is a number of seconds of any clock, in nanoseconds.
func (t *table) seconds(c column) int64 {
	ns, ok := nanoseconds(t.number(c))
	if !ok {
		t.fail(t.name(c), t.text(c), "bad timestamp")
	}
	return ns
}

// arrival notes the time of the row and returns seconds since the first one.
func (t *table) arrival(ns int64) float64 {
	if t.bad.reason != "" {
		return 0
	}
	return t.s.clock.at(ns)
}

// split cuts a line into cells. It reports false when a quote does not end.
func (t *table) split(line []byte) bool {
	t.cells = t.cells[:0]
	for {
		if len(line) == 0 || line[0] != '"' {
			i := bytes.IndexByte(line, ',')
			if i < 0 {
				t.cells = append(t.cells, string(line))
				return true
			}
			t.cells = append(t.cells, string(line[:i]))
			line = line[i+1:]
			continue
		}
		var cell []byte
		line = line[1:]
		for {
			i := bytes.IndexByte(line, '"')
			if i < 0 {
				return false
			}
			cell = append(cell, line[:i]...)
			line = line[i+1:]
			if len(line) == 0 || line[0] != '"' {
				break
			}
			cell = append(cell, '"')
			line = line[1:]
		}
		t.cells = append(t.cells, string(cell))
		if len(line) == 0 {
			return true
		}
		if line[0] != ',' {
			return false
		}
		line = line[1:]
	}
}
