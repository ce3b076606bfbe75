package datasets

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object of one record. Members are read by name with the methods below; the first
// fault of the record sticks, later reads of it return zero values. Names are case-sensitive and may
// not repeat.
type object struct {
	rec     *fault // shared with the objects around it
	at      string // path of the object in its record, with a final dot; empty: the record itself
	members []member
}

// member is a name with its value, a part of the text of the object around it.
type member struct {
	name  string
	value jsontext.Value
}

// scanLines calls record with each line of a file of JSON objects; record calls [emit] for every
// record that the line holds. The object is valid during the call.
func scanLines(s *source, record func(o *object) error) error {
	o := &object{}
	for {
		line, err := s.next()
		if line == nil || err != nil {
			return err
		}
		o.rec = &fault{line: s.line}
		if !o.parse(line) {
			if s.torn && o.rec.reason == "not JSON" {
				o.rec.reason = "truncated line"
			}
			s.drop(*o.rec)
			continue
		}
		if err := record(o); err != nil {
			return err
		}
	}
}

// emit ends a record: it hands out r if the record is sound and drops it otherwise.
func emit[T Record](s *source, bad *fault, r *T, each func(*T) error) error {
	if bad.reason != "" {
		s.drop(*bad)
		return nil
	}
	s.keep()
	return each(r)
}

// parse splits a value into members; the value must outlive the object.
func (o *object) parse(v []byte) bool {
	o.members = o.members[:0]
	d := jsontext.NewDecoder(bytes.NewReader(v))
	kind := d.PeekKind()
	err := o.split(d, kind, v)
	if err == nil {
		if _, more := d.ReadToken(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		o.fail("", string(v), "duplicate field")
	case err != nil:
		o.fail("", string(v), "not JSON")
	case kind != '{':
		o.fail("", string(v), "not an object")
	default:
		return true
	}
	o.members = nil
	return false
}

func (o *object) split(d *jsontext.Decoder, kind jsontext.Kind, v []byte) error {
	if kind != '{' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		end := d.InputOffset()
		m.value = v[end-int64(len(value)) : end]
		o.members = append(o.members, m)
	}
	_, err := d.ReadToken() // the end of the object
	return err
}

// get finds a member; of a missing one it returns nil.
func (o *object) get(name string) jsontext.Value {
	for i := range o.members {
		if o.members[i].name == name {
			return o.members[i].value
		}
	}
	return nil
}

// fail notes a fault of the record, unless it has one already.
func (o *object) fail(name, value, reason string) {
	if o.rec.reason == "" {
		field := o.at + name
		if name == "" && o.at != "" {
			field = o.at[:len(o.at)-1]
		}
		o.rec.field, o.rec.value, o.rec.reason = field, value, reason
	}
}

// skip leaves the record out without calling it faulty.
func (o *object) skip(reason string) {
	if o.rec.reason == "" {
		o.rec.reason, o.rec.filtered = reason, true
	}
}

// has reports whether a member is there and not null.
func (o *object) has(name string) bool {
	v := o.get(name)
	return v != nil && v.Kind() != 'n'
}

// need is a member that must be there.
func (o *object) need(name string) (jsontext.Value, bool) {
	v := o.get(name)
	if v == nil {
		o.fail(name, "", "missing field")
	}
	return v, v != nil
}

// object is a member that is an object; one that is missing or null has no members.
func (o *object) object(name string) *object {
	in := &object{rec: o.rec, at: o.at + name + "."}
	if o.has(name) {
		in.parse(o.get(name))
	}
	return in
}

// text is a string member; a missing or null one is "".
func (o *object) text(name string) string {
	if !o.has(name) {
		return ""
	}
	return o.str(name, o.get(name))
}

// count is a whole number, at least 0, possibly written as a string of digits.
func (o *object) count(name string) int {
	v, ok := o.need(name)
	if !ok {
		return 0
	}
	return o.whole(name, v)
}

// maybeCount is a count, Unknown where the member is missing or null.
func (o *object) maybeCount(name string) int {
	if !o.has(name) {
		return Unknown
	}
	return o.whole(name, o.get(name))
}

// number is a finite number, at least 0.
func (o *object) number(name string) float64 {
	v, ok := o.need(name)
	if !ok {
		return 0
	}
	return o.real(name, v)
}

// maybe is a number, NaN where the member is missing or null.
func (o *object) maybe(name string) float64 {
	if !o.has(name) {
		return math.NaN()
	}
	return o.real(name, o.get(name))
}

// list calls f for each element of an array member; a missing or null one has none.
func (o *object) list(name string, f func(where string, v jsontext.Value)) {
	if !o.has(name) {
		return
	}
	v := o.get(name)
	if v.Kind() != '[' {
		o.fail(name, string(v), "wrong type")
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		e, err := d.ReadValue()
		if err != nil {
			return
		}
		f(name+"["+strconv.Itoa(i)+"]", e)
	}
}

// ids is an array of ids, whole numbers from 0.
func (o *object) ids(name string) []uint64 {
	if _, ok := o.need(name); !ok {
		return nil
	}
	var ids []uint64
	o.list(name, func(_ string, v jsontext.Value) {
		n, err := strconv.ParseUint(string(v), 10, 64)
		switch {
		case err == nil:
			ids = append(ids, n)
		case v.Kind() == '0' && v[0] == '-':
			o.fail(name, string(v), "negative")
		default:
			o.fail(name, string(v), "wrong type")
		}
	})
	if !o.has(name) {
		o.fail(name, "null", "wrong type")
	}
	return ids
}

func (o *object) str(where string, v jsontext.Value) string {
	if v.Kind() != '"' {
		o.fail(where, string(v), "wrong type")
		return ""
	}
	out, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		o.fail(where, string(v), "wrong type")
	}
	return string(out)
}

func (o *object) whole(where string, v jsontext.Value) int {
	x := o.real(where, v)
	if x != math.Trunc(x) {
		o.fail(where, string(v), "not an integer")
		return 0
	}
	if x > most {
		o.fail(where, string(v), "out of range")
		return 0
	}
	return int(x)
}

// real accepts, beside numbers, the strings that protobuf writes for them, NaN among them.
func (o *object) real(where string, v jsontext.Value) float64 {
	digits := string(v)
	if v.Kind() == '"' {
		digits = o.str(where, v)
	} else if v.Kind() != '0' {
		o.fail(where, string(v), "wrong type")
		return 0
	}
	x, why := parseNumber(digits)
	switch why {
	case "":
		return x
	case "not a number":
		why = "wrong type"
	}
	o.fail(where, digits, why)
	return 0
}

// nanos is a point in time in nanoseconds, a number or a string of digits, never rounded.
func (o *object) nanos(name string) int64 {
	v, ok := o.need(name)
	if !ok {
		return 0
	}
	digits := string(v)
	if v.Kind() == '"' {
		digits = o.str(name, v)
	}
	ns, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || ns < 0 {
		o.fail(name, digits, "bad timestamp")
	}
	return ns
}

// seconds is a number of seconds of any clock, in nanoseconds.
func (o *object) seconds(name string) int64 { return o.clock(name, 1) }

// millis is a number of milliseconds of any clock, in nanoseconds.
func (o *object) millis(name string) int64 { return o.clock(name, 1e-3) }

func (o *object) clock(name string, unit float64) int64 {
	ns, ok := nanoseconds(o.number(name) * unit)
	if !ok {
		o.fail(name, string(o.get(name)), "bad timestamp")
	}
	return ns
}

// date is a date and time as text, or seconds since 1970, in nanoseconds.
func (o *object) date(name string) int64 {
	v, ok := o.need(name)
	if !ok {
		return 0
	}
	if v.Kind() != '"' {
		return o.seconds(name)
	}
	text := o.str(name, v)
	ns, ok := parseDate(text)
	if !ok {
		o.fail(name, text, "bad timestamp")
	}
	return ns
}

// arrival notes the time of the record and returns seconds since the first one.
func (o *object) arrival(s *source, ns int64) float64 {
	if o.rec.reason != "" {
		return 0
	}
	return s.clock.at(ns)
}
