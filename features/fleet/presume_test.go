package fleet

import (
	"testing"
	"time"
)

// TestPresumedStreams: an answer that comes all at once counts as streaming from its foretold first
// token on; what was not seen leaves no trace in rates and step times.
func TestPresumedStreams(t *testing.T) {
	var f Fleet
	ch, err := f.Sync(t0, []*Endpoint{endpoint("a", 1, 8000), endpoint("b", 2, 8000)})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Begin(t0, ch.Added[0], Work{Prompt: 100})
	b, _ := f.Begin(t0, ch.Added[0], Work{Prompt: 50, Cached: 20})
	a.Foresee(t0.Add(time.Second))
	var s Snapshot
	look := func(at time.Duration) *State { f.Snapshot(t0.Add(at), &s); return &s.States[0] }
	if n := f.Presume(t0.Add(900 * time.Millisecond)); n != 0 {
		t.Errorf("%d presumed before their time", n)
	}
	if n := f.Presume(t0.Add(2 * time.Second)); n != 1 {
		t.Errorf("%d presumed, want 1", n)
	}
	st := look(2 * time.Second)
	if st.Pending != 1 || st.Streaming != 1 || st.Context != 100 || st.Uncached != 30 || !st.LastFirst.IsZero() || st.StreamTime != 0 {
		t.Errorf("after presuming: %+v %+v", st.Inflight, st.Recent)
	}
	b.Tokens(t0.Add(2*time.Second), 1)
	b.Tokens(t0.Add(3*time.Second), 1)
	a.Tokens(t0.Add(3*time.Second), 40)
	st = look(3 * time.Second)
	if st.Gaps != 1 || st.Streamed != time.Second || st.Recent.Generated != 2 || st.StreamTime != time.Second || st.Context != 100+40+50+2 {
		t.Errorf("counts: %+v %+v", st.Inflight, st.Recent)
	}
	a.Move(ch.Added[1].Endpoint.Addr, 0)
	a.Done(t0.Add(3 * time.Second))
	b.Done(t0.Add(3 * time.Second))
	f.Snapshot(t0.Add(4*time.Second), &s)
	for i := range s.States {
		if st := &s.States[i]; st.Requests != 0 || st.Context != 0 || st.StreamTime != 0 || st.Recent.Generated != 0 {
			t.Errorf("left over on %s: %+v %+v", st.Name, st.Inflight, st.Recent)
		}
	}
	if f.Presume(t0.Add(time.Hour)) != 0 {
		t.Error("ended requests presumed")
	}
}
