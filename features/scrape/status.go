package scrape

import (
	"net/netip"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Status is how scraping one endpoint goes.
type Status struct {
	Name     string
	Addr     netip.AddrPort
	Path     string            // of the page
	Verdict  Verdict           // as of the call
	Age      time.Duration     // of the last page; negative: there never was one
	Every    time.Duration     // present interval
	Took     time.Duration     // last scrape, from request to end of the page
	Pages    uint64            // pages read
	Failures [NumCauses]uint64 // scrapes without a page, by cause
	Refused  uint64            // values refused: NaN, infinite, out of range, unreadable
	Missing  uint64            // gauges (waiting, running, KV usage) absent from pages that could be read
	Error    string            // of the last scrape; empty: it went well
}

// Stats appends the status of every endpoint, in order of slots. It never waits for a scrape.
func (s *Scraper) Stats(now time.Time, dst []Status) []Status {
	var snap fleet.Snapshot
	s.Fleet.Snapshot(now, &snap)
	trust := s.Trust()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range snap.States {
		st := &snap.States[i]
		out := Status{Name: st.Name, Addr: st.Addr}
		if t := s.targets[st.Instance]; t != nil {
			t.mu.Lock()
			out = t.status
			t.mu.Unlock()
		}
		out.Verdict, out.Age = trust.Judge(now, st), -1
		if !st.At.IsZero() {
			out.Age = max(0, now.Sub(st.At))
		}
		out.Every = time.Duration(period(st, s.slowest())) * s.interval()
		dst = append(dst, out)
	}
	return dst
}
