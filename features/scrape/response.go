package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// What can be wrong with an answer. The text becomes part of a message to the operator.
var (
	errHTTP     = errors.New("no HTTP/1.1 answer")
	errTooLarge = errors.New("the page is too large")
	errEncoding = errors.New("content encoding other than gzip")
)

// statusError is an answer other than 200.
type statusError int

func (e statusError) Error() string { return "HTTP " + strconv.Itoa(int(e)) }

const (
	maxHead  = 16 << 10 // status line and headers; also one line of the chunked framing
	maxExtra = 64       // informational answers before, and trailers behind the real one
)

var headEnd = []byte("\r\n\r\n")

// response reads one HTTP/1.1 answer as it arrives and passes the body on. It is strict: anything
// it does not understand ends the connection. It holds at most maxHead bytes.
type response struct {
	limit int64 // bytes of body, as transferred
	step  step
	held  []byte // part of a head or of a chunk line, carried to the next piece
	extra int    // informational answers and trailers so far

	status int
	gzip   bool
	open   bool // OpenMetrics
	close  bool // the connection cannot be used again
	left   int64
	body   int64
}

type step uint8

const (
	inHead step = iota
	inBody      // of left bytes
	inRest      // until the connection ends
	inSize      // a chunk size line
	inChunk
	inChunkEnd
	inTrailer
	complete
)

// reset prepares for the answer to the next request.
func (r *response) reset(limit int64) {
	*r = response{limit: limit, held: r.held[:0]}
}

// begun reports whether any byte of the answer has arrived.
func (r *response) begun() bool { return r.step != inHead || len(r.held) > 0 || r.extra > 0 }

// feed takes the next bytes and writes what belongs to a 200 body to sink. When it returns nil and
// step is complete, the answer is whole.
func (r *response) feed(p []byte, sink io.Writer) error {
	for len(p) > 0 {
		var err error
		switch r.step {
		case inHead:
			p, err = r.takeHead(p)
		case inBody, inChunk, inRest:
			p, err = r.takeBody(p, sink)
		case inSize, inChunkEnd, inTrailer:
			p, err = r.takeLine(p)
		case complete:
			return fmt.Errorf("%w: bytes after the answer", errHTTP)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eof tells that the connection ended.
func (r *response) eof() error {
	switch {
	case r.step == complete:
		return nil
	case r.step == inRest:
		r.step = complete
		return nil
	case !r.begun():
		return io.EOF
	}
	return errCut
}

func (r *response) takeHead(p []byte) (rest []byte, err error) {
	if len(r.held) == 0 { // the usual case: all of it in one piece
		if end := bytes.Index(p, headEnd); end >= 0 && end <= maxHead {
			return p[end+len(headEnd):], r.parseHead(p[:end])
		}
	}
	before := len(r.held)
	r.held = append(r.held, p[:min(len(p), maxHead-before)]...)
	end := bytes.Index(r.held, headEnd)
	if end < 0 {
		if len(r.held) == maxHead {
			return nil, fmt.Errorf("%w: headers over %d bytes", errHTTP, maxHead)
		}
		return nil, nil
	}
	err = r.parseHead(r.held[:end])
	r.held = r.held[:0]
	return p[end+len(headEnd)-before:], err
}

func (r *response) parseHead(head []byte) error {
	line, head, _ := bytes.Cut(head, []byte("\r\n"))
	if bytes.ContainsAny(line, "\r\n\x00") {
		return fmt.Errorf("%w: %.40q", errHTTP, line)
	}
	version, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' || string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		return fmt.Errorf("%w: %.40q", errHTTP, line)
	}
	status, err := strconv.ParseUint(string(rest[:3]), 10, 16)
	if err != nil || status < 100 {
		return fmt.Errorf("%w: %.40q", errHTTP, line)
	}
	if status < 200 && status != 101 {
		if r.extra++; r.extra > maxExtra {
			return fmt.Errorf("%w: no end of informational answers", errHTTP)
		}
		return nil // the real answer follows
	}
	r.status, r.close = int(status), string(version) == "HTTP/1.0"
	length, chunked := int64(-1), false
	for len(head) > 0 {
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		if err := r.header(line, &length, &chunked); err != nil {
			return err
		}
	}
	switch {
	case chunked && (length >= 0 || string(version) == "HTTP/1.0"):
		return fmt.Errorf("%w: chunked with a content length, or in HTTP/1.0", errHTTP)
	case chunked:
		r.step = inSize
	case status == 204 || status == 304 || length == 0:
		r.step = complete
	case length > r.limit:
		return errTooLarge
	case length > 0:
		r.step, r.left = inBody, length
	default:
		r.step, r.close = inRest, true
	}
	return nil
}

func (r *response) header(line []byte, length *int64, chunked *bool) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t\r\n\x00") || bytes.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("%w: header %.40q", errHTTP, line)
	}
	value = bytes.TrimSpace(value)
	switch {
	case is(name, "content-length"):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || *length >= 0 && *length != int64(n) {
			return fmt.Errorf("%w: content length %.40q", errHTTP, value)
		}
		*length = int64(n)
	case is(name, "transfer-encoding"):
		if !is(value, "chunked") || *chunked {
			return fmt.Errorf("%w: transfer encoding %.40q", errHTTP, value)
		}
		*chunked = true
	case is(name, "connection"):
		r.close = r.close && !is(value, "keep-alive") || is(value, "close")
	case is(name, "content-encoding"):
		if r.gzip = is(value, "gzip"); !r.gzip && !is(value, "identity") {
			return errEncoding
		}
	case is(name, "content-type"):
		r.open = bytes.HasPrefix(value, []byte("application/openmetrics-text"))
	}
	return nil
}

// is compares a header's name or value, case aside.
func is(b []byte, lower string) bool {
	return len(b) == len(lower) && strings.EqualFold(string(b), lower)
}

func (r *response) takeBody(p []byte, sink io.Writer) ([]byte, error) {
	n := int64(len(p))
	if r.step != inRest {
		n = min(n, r.left)
	}
	if r.body += n; r.body > r.limit {
		return nil, errTooLarge
	}
	if r.status == 200 {
		if _, err := sink.Write(p[:n]); err != nil {
			return nil, err
		}
	}
	if r.step == inRest {
		return nil, nil
	}
	if r.left -= n; r.left == 0 {
		if r.step == inBody {
			r.step = complete
		} else {
			r.step = inChunkEnd
		}
	}
	return p[n:], nil
}

// takeLine takes a line of the chunked framing.
func (r *response) takeLine(p []byte) ([]byte, error) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		if r.held = append(r.held, p...); len(r.held) > maxHead {
			return nil, fmt.Errorf("%w: chunk line over %d bytes", errHTTP, maxHead)
		}
		return nil, nil
	}
	line, rest := p[:i], p[i+1:]
	if len(r.held) > 0 {
		r.held = append(r.held, line...)
		line = r.held
		r.held = r.held[:0]
	}
	if len(line) > maxHead || len(line) == 0 || line[len(line)-1] != '\r' {
		return nil, fmt.Errorf("%w: chunk line %.40q", errHTTP, line)
	}
	line = line[:len(line)-1]
	switch r.step {
	case inSize:
		return rest, r.chunkSize(line)
	case inChunkEnd:
		if len(line) > 0 {
			return nil, fmt.Errorf("%w: chunk longer than its size", errHTTP)
		}
		r.step = inSize
	default: // a trailer, or the empty line behind the last one
		if len(line) == 0 {
			r.step = complete
		} else if r.extra++; r.extra > maxExtra {
			return nil, fmt.Errorf("%w: no end of trailers", errHTTP)
		}
	}
	return rest, nil
}

func (r *response) chunkSize(line []byte) error {
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 63)
	if err != nil {
		return fmt.Errorf("%w: chunk size %.40q", errHTTP, line)
	}
	if r.left = int64(n); n == 0 {
		r.step = inTrailer
	} else {
		r.step = inChunk
	}
	return nil
}
