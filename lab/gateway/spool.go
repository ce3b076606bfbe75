package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
)

// spool carries a request body from the picker to the endpoint. It keeps what has passed, up to a
// limit, so that the request can be sent again; beyond the limit it is a bounded pipe.
type spool struct {
	mu     sync.Mutex
	change *sync.Cond
	limit  int
	buf    []byte // the body from byte base on
	base   int
	read   int // position of the current reader
	reader *spoolReader
	closed bool // nobody reads: bytes beyond the limit are dropped, not waited for
	eof    bool
	err    error // the request is over
}

var errNotKept = errors.New("the request body is longer than the retry buffer")

func newSpool(ctx context.Context, limit int) *spool {
	s := &spool{limit: limit}
	s.change = sync.NewCond(&s.mu)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = context.Cause(ctx)
		s.change.Broadcast()
	})
	return s
}

// Write waits while a reader is more than a chunk behind and the body is past the limit.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && !s.closed && len(s.buf) > 0 && s.base+len(s.buf)+len(p) > s.limit+s.read {
		s.change.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closed && len(s.buf)+len(p) > s.limit:
		s.base += len(s.buf) + len(p)
		s.buf = nil
	default:
		s.buf = append(s.buf, p...)
	}
	s.trim()
	s.change.Broadcast()
	return len(p), nil
}

// trim forgets what was read once the body no longer fits the limit.
func (s *spool) trim() {
	if n := s.read - s.base; n > 0 && s.base+len(s.buf) > s.limit {
		s.buf = s.buf[:copy(s.buf, s.buf[n:])]
		s.base = s.read
	}
}

// end marks the end of the body.
func (s *spool) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eof = true
	s.change.Broadcast()
}

// kept reports whether the body can be read again from its start.
func (s *spool) kept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base == 0
}

// open returns a reader from the start of the body; the one before it ends.
func (s *spool) open() io.ReadCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.closed = 0, false
	s.reader = &spoolReader{s}
	s.change.Broadcast()
	return s.reader
}

type spoolReader struct{ s *spool }

func (r *spoolReader) Read(p []byte) (int, error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && s.reader == r && !s.eof && s.read == s.base+len(s.buf) {
		s.change.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.reader != r:
		return 0, io.ErrClosedPipe
	case s.read < s.base:
		return 0, errNotKept
	}
	n := copy(p, s.buf[s.read-s.base:])
	if n == 0 && s.eof {
		return 0, io.EOF
	}
	s.read += n
	s.trim()
	s.change.Broadcast()
	return n, nil
}

func (r *spoolReader) Close() error {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == r {
		s.reader, s.closed = nil, true
		s.change.Broadcast()
	}
	return nil
}
