package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// target is one endpoint instance being scraped. All but status belongs to the one who holds busy:
// the loop, or the goroutine it handed a slow scrape to.
type target struct {
	busy    atomic.Bool
	state   fleet.State // as it was when the running scrape began
	path    string
	request []byte
	conn    net.Conn // kept alive between scrapes; nil: none
	slow    bool     // the last scrape did not answer within the grace: do not wait for it in the loop
	tick    int64    // of the last scrape; negative: none yet
	began   time.Time
	answer  response
	page    Scanner
	zipped  []byte
	load    *fleet.Load // as last stored
	memory  memory

	mu     sync.Mutex
	status Status
	logged time.Time // of the last line about failures
	failed time.Time // since when it fails; zero: it does not
}

// describe takes over the endpoint's description, which may change while the instance stays.
func (t *target) describe(e *fleet.Endpoint) {
	path := e.Metrics
	if !isPath(path) {
		path = Path(e.Engine)
	}
	if path == t.path {
		return
	}
	t.path = path
	t.request = fmt.Appendf(t.request[:0], "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: presage\r\n"+
		"Accept: text/plain;version=0.0.4\r\nAccept-Encoding: identity\r\n\r\n", path, e.Addr)
}

// isPath keeps what is no path, from whatever source of endpoints, out of the request.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// idle reports whether nothing of interest can happen there unseen: no request of ours is open, and
// the last two pages told of an engine without work.
func idle(s *fleet.State) bool {
	l := s.Load
	return s.Requests == 0 && l.Known.Has(fleet.KnowWaiting|fleet.KnowRunning) && l.Waiting == 0 && l.Running == 0 &&
		l.ChangedAt.Before(l.At)
}

// period is how many ticks lie between scrapes of an endpoint in this state.
func period(s *fleet.State, slowest int64) int64 {
	switch {
	case s.Errors > 0:
		return min(int64(1)<<min(s.Errors-1, 30), slowest)
	case idle(s):
		return slowest
	}
	return 1
}

// due reports whether the endpoint is to be scraped at this tick. Endpoints of the same period are
// due at the same ticks, so that the loop wakes up for many at once.
func (t *target) due(s *fleet.State, tick, slowest int64) bool {
	p := period(s, slowest)
	return t.tick < 0 || tick/p != t.tick/p
}

// send asks for the page on the open connection.
func (t *target) send(limit int64) error {
	t.answer.reset(limit)
	t.page.Reset(t.state.Engine, t.state.Model)
	t.zipped = t.zipped[:0]
	_, err := t.conn.Write(t.request)
	return err
}

// receive reads until the answer is whole. After a timeout it may be called again to go on.
func (t *target) receive(buf []byte) error {
	for t.answer.step != complete {
		n, err := t.conn.Read(buf)
		if ferr := t.answer.feed(buf[:n], t); ferr != nil {
			return ferr
		}
		if errors.Is(err, io.EOF) {
			err = t.answer.eof()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write takes a piece of the body.
func (t *target) Write(p []byte) (int, error) {
	if !t.answer.gzip {
		return t.page.Write(p)
	}
	if len(t.zipped)+len(p) > maxZipped {
		return 0, errTooLarge
	}
	t.zipped = append(t.zipped, p...)
	return len(p), nil
}

// maxZipped bounds a compressed page, which must be held whole, unlike a plain one.
const maxZipped = 256 << 10

// whole runs a scrape from dialling to the end of the answer. A kept connection that the server has
// closed meanwhile is replaced once.
func (t *target) whole(ctx context.Context, s *Scraper, buf []byte) error {
	deadline := t.began.Add(s.timeout())
	for {
		kept := t.conn != nil
		if !kept {
			dctx, cancel := context.WithDeadline(ctx, deadline)
			conn, err := s.dial(dctx, t.state.Addr)
			cancel()
			if err != nil {
				return err
			}
			t.conn = conn
		}
		err := t.exchange(ctx, deadline, func() error {
			if err := t.send(s.limit()); err != nil {
				return err
			}
			return t.receive(buf)
		})
		if err == nil || !kept || t.answer.begun() || isTimeout(err) {
			return err
		}
		t.hangUp()
	}
}

// exchange does something on the connection before the deadline, or until ctx is done.
func (t *target) exchange(ctx context.Context, deadline time.Time, do func() error) error {
	c := t.conn
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return do()
}

// hangUp closes the connection, if there is one.
func (t *target) hangUp() {
	if t.conn != nil {
		_ = t.conn.Close()
		t.conn = nil
	}
}

// read turns the answer into a load.
func (t *target) read(limit int64) (*fleet.Load, Report, error) {
	if t.answer.status != 200 {
		return nil, Report{}, statusError(t.answer.status)
	}
	if t.answer.gzip {
		if err := t.inflate(limit); err != nil {
			return nil, Report{}, err
		}
	}
	if t.answer.open {
		t.page.OpenMetrics()
	}
	l := new(fleet.Load)
	r, err := t.page.Load(l, t.load)
	return l, r, err
}

// inflate scans a page that was sent compressed although we did not ask for it: inflating costs
// more than the bytes saved.
func (t *target) inflate(limit int64) error {
	z, err := gzip.NewReader(bytes.NewReader(t.zipped))
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	n, err := io.Copy(&t.page, io.LimitReader(z, limit+1))
	switch {
	case n > limit:
		return errTooLarge
	case errors.Is(err, errLongLine), errors.Is(err, errManyRows):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}
