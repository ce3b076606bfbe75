package answer

import "bytes"

// maxKept is the memory of one kind that a reader takes along to its next answer.
const maxKept = 64 << 10

// stream is the state of reading server-sent events between two chunks.
type stream struct {
	line    []byte // the line that the last chunk broke off in
	data    []byte // data of the event that is not complete yet, where it is not in the current chunk
	pending []byte // the same, while all of it lies in the current chunk
	hasData bool
	inChunk bool // pending holds the data, not data
	error   bool // the event is named error
	begun   bool // the first line is over
	skipLF  bool // the last byte was CR: a LF that follows belongs to it
}

func (s *stream) reset() {
	*s = stream{line: recycle(s.line), data: recycle(s.data)}
}

func recycle(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

// read splits a chunk into lines by LF, CR or CRLF.
func (r *Reader) read(chunk []byte) {
	s := &r.stream
	lf, cr := -1, -1 // the next of each at or after at; len(chunk): none
	for at := 0; at < len(chunk) && !r.blind; {
		if s.skipLF {
			s.skipLF = false
			if chunk[at] == '\n' {
				at++
				continue
			}
		}
		lf, cr = index(chunk, at, lf, '\n'), index(chunk, at, cr, '\r')
		end := min(lf, cr)
		if end == len(chunk) {
			s.line = append(s.line, chunk[at:]...)
			break
		}
		s.skipLF = end == cr
		line, whole := chunk[at:end], len(s.line) == 0
		if !whole {
			s.line = append(s.line, line...)
			line = s.line
		}
		r.endLine(line, whole)
		s.line = s.line[:0]
		at = end + 1
	}
	r.limit(len(s.line))
	s.save()
}

// index returns the position of c at or after at, given that of an earlier call, so that a chunk is
// searched once for each.
func index(chunk []byte, at, last int, c byte) int {
	if last >= at {
		return last
	}
	if n := bytes.IndexByte(chunk[at:], c); n >= 0 {
		return at + n
	}
	return len(chunk)
}

// save copies the data that lies in the chunk, which the caller takes back.
func (s *stream) save() {
	if s.inChunk {
		s.data = append(s.data[:0], s.pending...)
		s.inChunk, s.pending = false, nil
	}
}

// limit stops parsing when a line, or the data of an event, is too long, and reports whether it did.
func (r *Reader) limit(n int) bool {
	if n > maxLine {
		r.blind = true
		r.stream = stream{}
	}
	return r.blind
}

// flush ends the last line and the last event.
func (r *Reader) flush() {
	s := &r.stream
	if r.blind {
		return
	}
	if len(s.line) > 0 {
		r.endLine(s.line, false)
		s.line = s.line[:0]
	}
	r.endEvent()
}

// endLine reads one line; inChunk tells that it may be kept by reference until the chunk is read.
func (r *Reader) endLine(line []byte, inChunk bool) {
	s := &r.stream
	if r.limit(len(line)) {
		return
	}
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		r.endEvent()
		return
	}
	name, value, _ := bytes.Cut(line, colon)
	switch string(name) {
	case "data":
		value = bytes.TrimPrefix(value, space)
	case "event":
		s.error = string(bytes.TrimPrefix(value, space)) == "error"
		return
	default: // comments (empty names), id, retry, and what nobody knows
		return
	}
	switch {
	case !s.hasData && inChunk:
		s.pending, s.inChunk = value, true
	case !s.hasData:
		s.data = append(s.data[:0], value...)
	default:
		s.save()
		s.data = append(append(s.data, '\n'), value...)
		if r.limit(len(s.data)) {
			return
		}
	}
	s.hasData = true
}

var (
	colon = []byte(":")
	space = []byte(" ")
	done  = []byte("[DONE]")
)

// endEvent reads the event that a blank line completed.
func (r *Reader) endEvent() {
	s := &r.stream
	if s.hasData {
		data := s.data
		if s.inChunk {
			data = s.pending
		}
		r.event(bytes.TrimSpace(data))
	}
	r.failed = r.failed || s.error
	s.hasData, s.inChunk, s.pending, s.error = false, false, nil, false
}
