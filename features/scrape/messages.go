package scrape

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// messages tells the log about endpoints that cannot be scraped: at most one line per endpoint in
// quietFor, and at most maxMessages in all.
type messages struct {
	mu    sync.Mutex
	ready int // endpoints not left out, at the last tick
	total int
	since time.Time // of the present window
	lines int       // in it
}

const (
	quietFor    = 30 * time.Second
	maxMessages = 20
)

// count notes how many endpoints take part in routing.
func (m *messages) count(t Trust, snap *fleet.Snapshot) {
	ready := 0
	for i := range snap.States {
		if !t.Judge(snap.At, &snap.States[i]).Out() {
			ready++
		}
	}
	m.mu.Lock()
	m.ready, m.total = ready, len(snap.States)
	m.mu.Unlock()
}

// may reports whether a line may be written now, and whether it is the last one of its window.
func (m *messages) may(now time.Time) (ok, last bool) {
	if m.since.IsZero() || now.Sub(m.since) >= quietFor {
		m.since, m.lines = now, 0
	}
	m.lines++
	return m.lines <= maxMessages, m.lines == maxMessages
}

// failed reports a failed scrape, the second one in a row at the earliest: one alone is no news, and
// at the start it takes a tick to know how many endpoints are ready. The caller holds t.mu.
func (m *messages) failed(log *slog.Logger, t *target, now time.Time, trust Trust, c Cause, err error) {
	if t.failed.IsZero() {
		t.failed = now
	}
	if log == nil || t.load.Errors < 2 || !t.logged.IsZero() && now.Sub(t.logged) < quietFor {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ok, last := m.may(now)
	if !ok {
		return
	}
	t.logged = now
	msg := []string{where(&t.state) + c.what(err, t.path)}
	if r := c.remedy(err); r != "" {
		msg = append(msg, r)
	}
	msg = append(msg, m.effect(trust.Judge(now, &t.state), trust))
	if last {
		msg = append(msg, fmt.Sprintf("more endpoints may fail, no further lines for %v", quietFor))
	}
	log.Warn(strings.Join(msg, "; "), "endpoint", t.state.Name, "cause", c.String())
}

// effect says what a failure does to routing.
func (m *messages) effect(v Verdict, trust Trust) string {
	switch {
	case v == Fresh || v == Frozen:
		return fmt.Sprintf("its last page counts until it is %v old", trust.stale())
	case v == Blind:
		return "ranked by its own open requests meanwhile"
	case m.ready == 0:
		return fmt.Sprintf("no page of any endpoint can be read: all stay in routing, ranked by their own open requests (0 of %d ready)", m.total)
	}
	return fmt.Sprintf("kept out of routing until it answers (%d of %d ready)", m.ready, m.total)
}

// recovered reports that a failure the log knows of is over. The caller holds t.mu.
func (m *messages) recovered(log *slog.Logger, t *target, now time.Time) {
	if log != nil && !t.failed.IsZero() && !t.logged.Before(t.failed) {
		log.Info(where(&t.state)+fmt.Sprintf("answers on %s again after %v", t.path, now.Sub(t.failed).Round(time.Millisecond)),
			"endpoint", t.state.Name)
	}
	t.failed = time.Time{}
}

// where names the endpoint: the place of its description, its name and its address.
func where(s *fleet.State) string {
	at := ""
	if s.Origin != "" {
		at = s.Origin + ": "
	}
	return fmt.Sprintf("%s%s %s: ", at, s.Name, s.Addr)
}
