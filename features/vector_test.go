package features

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// TestExtract follows one endpoint through a pending and a streaming request and reads its vector.
func TestExtract(t *testing.T) {
	t0 := time.Unix(1000, 0)
	var f fleet.Fleet
	ch, err := f.Sync(t0, []*fleet.Endpoint{{Name: "a", Addr: netip.MustParseAddrPort("10.0.0.1:8000"), Model: "m", GPU: "H100"}})
	if err != nil {
		t.Fatal(err)
	}
	ref := ch.Added[0]
	f.SetLoad(ref, &fleet.Load{At: t0, Known: fleet.KnowWaiting, Waiting: 3})
	a, _ := f.Begin(t0, ref, fleet.Work{Prompt: 1000, Cached: 400})
	a.Tokens(t0.Add(time.Second), 1)
	f.Begin(t0.Add(2*time.Second), ref, fleet.Work{Prompt: 500, Cached: 100})
	var snap fleet.Snapshot
	f.Snapshot(t0.Add(3*time.Second), &snap)
	x, at := make([]Vector, 1), make([]Where, 1)
	req := request.Request{PromptTokens: 300, Adapter: "l"}
	Extract(x, at, &req, &snap, []int32{0})
	want := map[Field]float64{
		Prompt: 300, Uncached: 300, Adapter: 1, Media: 0,
		Pending: 1, PendingPrompt: 500, PendingUncached: 400, PendingAttention: 400 * (100 + 200),
		HeadUncached: 400, HeadAge: 1, OldestPending: 1, Streams: 1, Context: 1001, SinceToken: 2,
		FirstRate: math.Exp(-2), PrefillRate: 600 * math.Exp(-2),
		PrefillLoad: 60 * math.Exp(-.2), AttentionLoad: 600 * (400 + 300) / 10 * math.Exp(-.2),
		RecentTTFT: 1, Waiting: 3, GaugeAge: 3,
	}
	for f := range Dim {
		got, known := float64(x[0][f]), x[0][f] == x[0][f]
		w, wanted := want[f]
		if known != wanted || known && math.Abs(got-w) > 1e-4*(1+math.Abs(w)) {
			t.Errorf("%v = %v, want %v (known %v)", f, got, w, wanted)
		}
	}
	if at[0].Class.Value() != (fleet.Class{Model: "m", GPU: "H100", TP: 1}) {
		t.Errorf("class %+v", at[0].Class.Value())
	}
}

// TestExtractAllocatesNothing for a hundred endpoints.
func TestExtractAllocatesNothing(t *testing.T) {
	var f fleet.Fleet
	var eps []*fleet.Endpoint
	for i := range 100 {
		eps = append(eps, &fleet.Endpoint{Name: string(rune('A' + i)), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 8000)})
	}
	if _, err := f.Sync(time.Unix(0, 0), eps); err != nil {
		t.Fatal(err)
	}
	var snap fleet.Snapshot
	f.Snapshot(time.Unix(1, 0), &snap)
	x, at, hits := make([]Vector, 100), make([]Where, 100), make([]int32, 100)
	req := request.Request{PromptTokens: 300}
	if n := testing.AllocsPerRun(100, func() { Extract(x, at, &req, &snap, hits) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSchemaNamesEveryField: names are distinct and the schema depends on them.
func TestSchemaNamesEveryField(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range FieldNames() {
		if n == "" || seen[n] {
			t.Errorf("field name %q empty or used twice", n)
		}
		seen[n] = true
	}
	if Schema() != "v1-"+Schema()[3:] || len(Schema()) != 11 {
		t.Errorf("schema %q", Schema())
	}
}
