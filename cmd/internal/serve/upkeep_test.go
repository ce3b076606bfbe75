package serve

import (
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
)

// TestRestartsEmptyCaches: what an engine held before it was seen to start anew is no longer believed.
func TestRestartsEmptyCaches(t *testing.T) {
	s := &Service{fleet: new(fleet.Fleet), index: prefix.NewIndex(prefix.Options{}), ratios: new(request.Ratios)}
	now := time.Unix(1, 0)
	addr := netip.MustParseAddrPort("10.0.0.1:8000")
	ch, err := s.fleet.Sync(now, []*fleet.Endpoint{{Name: "a", Addr: addr, TP: 1}})
	if err != nil {
		t.Fatal(err)
	}
	a := ch.Added[0]
	blocks := []uint64{1, 2, 3}
	for _, step := range []struct {
		restarts uint32
		held     int
	}{{0, 3}, {0, 3}, {1, 0}, {1, 3}, {3, 0}} {
		s.fleet.SetLoad(a, &fleet.Load{At: now, Restarts: step.restarts})
		s.index.Insert(a, blocks)
		s.keepUp(now)
		if got, _ := s.index.Shelf(a); got.Blocks != step.held {
			t.Errorf("%d restarts: %d blocks held, want %d", step.restarts, got.Blocks, step.held)
		}
	}
}
