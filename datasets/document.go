package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// document is a JSON document that is walked without ever holding more of it than one value of
// bounded size.
type document struct {
	s   *source
	dec *jsontext.Decoder
	in  *finite
}

func newDocument(s *source) *document {
	in := &finite{in: s.in, limit: s.limit}
	return &document{s: s, in: in, dec: jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true))}
}

// err explains an error of the decoder, which is fatal: what follows cannot be trusted.
func (d *document) err(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	e := &Error{File: d.s.report.File, Cause: err}
	switch {
	case d.in.err != nil && !errors.Is(d.in.err, io.EOF):
		return d.s.broken(d.in.err)
	case d.in.over:
		e.Reason = fmt.Sprintf("a value at byte %d is longer than %s", d.dec.InputOffset(), size(d.in.limit))
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		e.Reason = fmt.Sprintf("unexpected EOF: the document is cut after %d rows", d.s.report.Rows)
		e.Advice = "get the file again; a part of a report is never taken for the whole"
	default:
		e.Reason = fmt.Sprintf("not JSON at byte %d", d.dec.InputOffset())
	}
	return e
}

// object calls f with each member's name; f must consume its value. It reports false, having
// consumed the value, where the value is not an object.
func (d *document) object(f func(name string) error) (bool, error) {
	if d.kind() != '{' {
		return false, d.skip()
	}
	return true, d.walk(func() error {
		name, err := d.dec.ReadToken()
		if err != nil {
			return d.err(err)
		}
		return f(name.String())
	})
}

// array calls f for each element; f must consume it. It reports false, having consumed the value,
// where the value is not an array.
func (d *document) array(f func() error) (bool, error) {
	if d.kind() != '[' {
		return false, d.skip()
	}
	return true, d.walk(f)
}

func (d *document) walk(each func() error) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return d.err(err)
	}
	for {
		if kind := d.kind(); kind == '}' || kind == ']' || kind == 0 { // the end, or an error
			_, err := d.dec.ReadToken()
			return d.err(err)
		}
		if err := each(); err != nil {
			return err
		}
	}
}

// kind peeks at the next value, granting it its share of bytes.
func (d *document) kind() jsontext.Kind {
	d.in.read = 0
	return d.dec.PeekKind()
}

// value reads the next value whole. It is valid until the next call.
func (d *document) value() (jsontext.Value, error) {
	d.in.read = 0
	v, err := d.dec.ReadValue()
	return v, d.err(err)
}

// record reads the next value as the object of one record.
func (d *document) record(n int) (*object, error) {
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	o := &object{rec: &fault{record: n}}
	o.parse(v.Clone())
	return o, nil
}

// skip reads over the next value, token by token.
func (d *document) skip() error {
	for depth := d.dec.StackDepth(); ; {
		d.in.read = 0
		if _, err := d.dec.ReadToken(); err != nil {
			return d.err(err)
		}
		if d.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// end makes sure that nothing follows the document.
func (d *document) end() error {
	d.in.read = 0
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			return d.s.fatal(0, fmt.Sprintf("more than one JSON document, the second before byte %d", d.dec.InputOffset()), "give one file for each")
		}
		return d.err(err)
	}
	return nil
}

// finite turns the bare NaN, Infinity and -Infinity that Python's json writes into strings, which
// number readers know as not finite, and stops a value from growing without bound.
type finite struct {
	in     *bufio.Reader
	limit  int // bytes between two resets of read
	read   int
	over   bool
	err    error
	quoted bool // inside a string
	escape bool // after a backslash
	out    []byte
}

// Read implements io.Reader.
func (f *finite) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.read > f.limit {
			f.over = true
			return 0, errors.New("value too long")
		}
		if f.err != nil {
			return 0, f.err
		}
		f.fill()
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	f.read += n
	return n, nil
}

// fill translates the next few kilobytes.
func (f *finite) fill() {
	const chunk = 4 << 10
	f.out = f.out[:0]
	for len(f.out) < chunk {
		b, err := f.in.ReadByte()
		if err != nil {
			f.err = err
			return
		}
		switch {
		case f.escape:
			f.escape = false
		case f.quoted && b == '\\':
			f.escape = true
		case b == '"':
			f.quoted = !f.quoted
		case !f.quoted && (b == 'N' || b == 'I' || b == '-'):
			f.out = append(f.out, f.word(b)...)
			continue
		}
		f.out = append(f.out, b)
	}
}

// word is what stands for a bare word that begins with b.
func (f *finite) word(b byte) string {
	for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
		if w[0] != b {
			continue
		}
		rest, err := f.in.Peek(len(w) - 1)
		if string(rest) == w[1:] {
			if _, err := f.in.Discard(len(w) - 1); err != nil {
				f.err = err
			}
			return `"` + w + `"`
		}
		if err != nil && !errors.Is(err, io.EOF) {
			f.err = err
		}
	}
	return string(b)
}

var _ io.Reader = (*finite)(nil)
