package scrape

import (
	"bytes"
	"errors"
	"hash/maphash"
)

// What makes a page unusable as a whole.
var (
	errLongLine = errors.New("a line is longer than 256 KiB")
	errManyRows = errors.New("more than 256 engine series for one metric")
	errCut      = errors.New("the page is cut short")
	errNoSeries = errors.New("no series of a known engine")
	errModels   = errors.New("several models, none of them the endpoint's")
)

const (
	maxLine = 256 << 10
	maxRows = 256
)

// Scanner reads one metrics page in the Prometheus text format, or OpenMetrics, as it arrives: feed
// it with [Scanner.Write] in pieces cut anywhere, then call [Scanner.Load]. It looks only at the
// lines of metrics it knows and does not allocate once warm. What it keeps of a page is bounded: one
// line and one row of numbers per engine.
//
// The zero value reads a page of any known engine; use [Scanner.Reset] before each page.
type Scanner struct {
	model   string
	choices []*dialect
	dialect *dialect // chosen by the first line that fits; nil before
	seed    maphash.Seed

	carry   []byte // the beginning of a line whose end has not arrived
	labels  labels
	rows    []row
	lora    adapters
	spoiled uint32 // metrics of lines that could not be read, as bits
	refused int    // values refused so far
	open    bool   // OpenMetrics: the page must end with # EOF
	ended   bool   // # EOF was seen
}

// Reset prepares for a page of an endpoint with the given engine (empty: any) and model (empty: any).
func (s *Scanner) Reset(engine, model string) {
	s.model, s.dialect = model, nil
	if c := s.choices; len(c) != 1 || c[0].engine != engine {
		s.choices = dialects(engine)
	}
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	if len(s.choices) == 1 {
		s.dialect = s.choices[0]
	}
	s.carry, s.rows = s.carry[:0], s.rows[:0]
	if cap(s.carry) > maxLine/8 {
		s.carry = nil
	}
	s.lora.reset()
	s.spoiled, s.refused, s.open, s.ended = 0, 0, false, false
}

// OpenMetrics tells that the page is declared as OpenMetrics: it is whole only with its end marker.
func (s *Scanner) OpenMetrics() { s.open = true }

// Write reads the next piece of the page. An error means that the page is unusable.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if len(s.carry)+len(p) > maxLine {
				return 0, errLongLine
			}
			s.carry = append(s.carry, p...)
			break
		}
		line := p[:i]
		p = p[i+1:]
		if len(s.carry) > 0 {
			if len(s.carry)+len(line) > maxLine {
				return 0, errLongLine
			}
			s.carry = append(s.carry, line...)
			line = s.carry
			s.carry = s.carry[:0]
		}
		if err := s.line(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// line looks at one line without its line feed. Most are of no interest: they must be cheap.
func (s *Scanner) line(b []byte) error {
	if len(b) > len("# EOF\r") && b[0] == '#' {
		return nil
	}
	d := s.dialect
	if d == nil || len(b) <= len(d.prefix) || string(b[:len(d.prefix)]) != d.prefix {
		var m metric
		if b, m = s.seldom(b); m == unwanted {
			return nil
		}
		return s.sample(m, b)
	}
	if !d.starts[b[len(d.prefix)]] {
		return nil
	}
	n := nameEnd(b)
	if m := d.metric(b[:n]); m != unwanted {
		return s.sample(m, b[n:])
	}
	return nil
}

// seldom looks at lines that do not plainly start with a metric of the dialect: comments, other
// exporters, leading blanks, quoted names, and the first line of a dialect not yet known. It returns
// what follows the name of a wanted metric.
func (s *Scanner) seldom(b []byte) ([]byte, metric) {
	b = skipBlanks(b)
	if len(b) == 0 {
		return nil, unwanted
	}
	switch b[0] {
	case '#':
		s.ended = s.ended || string(bytes.TrimRight(b, "\r")) == "# EOF"
		return nil, unwanted
	case '{':
		l := labels{rest: b[1:]}
		name, value, err := l.next()
		if err != nil || name == nil || value != nil {
			return nil, unwanted
		}
		// The labels that follow the name are read as if it had stood before the brace.
		return append([]byte{'{'}, l.rest...), s.choose(name)
	}
	if s.dialect != nil && len(b) > 0 && b[0] != s.dialect.prefix[0] {
		return nil, unwanted
	}
	n := nameEnd(b)
	return b[n:], s.choose(b[:n])
}

// choose finds a name's meaning, and the page's dialect if it is not known.
func (s *Scanner) choose(name []byte) metric {
	for _, d := range s.choices {
		if s.dialect != nil && s.dialect != d {
			continue
		}
		if m := d.metric(name); m != unwanted {
			s.dialect = d
			return m
		}
	}
	return unwanted
}

// sample takes in the series of a wanted metric, b being what follows its name. A line that cannot
// be read spoils its metric for the whole page: nobody can say which engine it spoke of.
func (s *Scanner) sample(m metric, b []byte) error {
	var x series
	if !s.parse(b, &x) {
		s.spoiled |= 1 << m
		s.refused++
		return nil
	}
	if x.part {
		return nil
	}
	if m == loraInfo {
		if !s.lora.offer(&x) {
			s.refused++
		}
		return nil
	}
	r, err := s.row(x.model, x.rank)
	if err != nil {
		return err
	}
	if m == cacheInfo {
		s.text(r, blockSize, x.blockSize)
		s.text(r, blocks, x.blocks)
	} else {
		s.set(r, m, x.value)
	}
	return nil
}
