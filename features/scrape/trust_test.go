package scrape

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

var t0 = time.Now()

func TestJudge(t *testing.T) {
	ago := func(s float64) time.Time { return t0.Add(-time.Duration(s * float64(time.Second))) }
	full := fleet.Load{At: ago(.1), Known: gauges, Running: 106, Waiting: 15, KVUsage: .904, KVMax: .904, ChangedAt: ago(30)}
	with := func(l fleet.Load, edit func(*fleet.Load)) fleet.Load { edit(&l); return l }
	for _, c := range []struct {
		name   string
		load   fleet.Load
		ledger fleet.Inflight
		want   Verdict
	}{
		{"never scraped", fleet.Load{}, fleet.Inflight{}, Absent},
		{"refused", fleet.Load{Errors: 3, Unreachable: true}, fleet.Inflight{}, Absent},
		{"answers, but no page", fleet.Load{Errors: 1}, fleet.Inflight{}, Blind},
		{"refused, but streaming", fleet.Load{Errors: 3, Unreachable: true}, fleet.Inflight{LastToken: ago(1)}, Blind},
		{"recent", fleet.Load{At: ago(3)}, fleet.Inflight{}, Fresh},
		{"old", fleet.Load{At: ago(3.1), Errors: 3, Unreachable: true}, fleet.Inflight{}, Stale},
		{"old, answers without a page", fleet.Load{At: ago(60), Errors: 3}, fleet.Inflight{}, Blind},
		{"old, streaming", fleet.Load{At: ago(60), Errors: 3, Unreachable: true}, fleet.Inflight{LastToken: ago(2)}, Blind},
		{"from the future", fleet.Load{At: ago(-5)}, fleet.Inflight{}, Fresh},
		{"full, ledger just empty", full, fleet.Inflight{LastEnd: ago(9.9)}, Fresh},
		{"full, ledger empty for 10 s", full, fleet.Inflight{LastEnd: ago(10)}, Frozen},
		{"full, never had a request of ours", full, fleet.Inflight{}, Frozen},
		{"full, a probe is open", full, fleet.Inflight{Requests: 1, LastEnd: ago(20)}, Fresh},
		{"full of others: gauges move", with(full, func(l *fleet.Load) { l.ChangedAt = ago(2) }), fleet.Inflight{LastEnd: ago(60)}, Fresh},
		{"full, but the page is old", with(full, func(l *fleet.Load) { l.At = ago(4) }), fleet.Inflight{LastEnd: ago(60)}, Stale},
		{"idle for long", fleet.Load{At: ago(.1), Known: gauges, ChangedAt: ago(60)}, fleet.Inflight{LastEnd: ago(60)}, Fresh},
		{"KV left over", fleet.Load{At: ago(.1), Known: gauges, KVUsage: .2, KVMax: .8, ChangedAt: ago(60)}, fleet.Inflight{}, Frozen},
		{"full, since when is unknown", with(full, func(l *fleet.Load) { l.ChangedAt = time.Time{} }), fleet.Inflight{}, Fresh},
		{"gauges unknown", fleet.Load{At: ago(.1), Waiting: 9, KVMax: 1, ChangedAt: ago(60)}, fleet.Inflight{}, Fresh},
	} {
		s := fleet.State{Endpoint: &fleet.Endpoint{}, Load: &c.load, Inflight: c.ledger, Since: ago(100)}
		if got := (Trust{}).Judge(t0, &s); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	joined := fleet.State{Endpoint: &fleet.Endpoint{}, Load: &full, Since: ago(5)}
	if got := (Trust{}).Judge(t0, &joined); got != Fresh {
		t.Errorf("an endpoint that joined 5 s ago: %v", got)
	}
}

func TestTrustedLoad(t *testing.T) {
	full := fleet.Load{At: t0, Known: gauges | fleet.KnowBlocks | fleet.KnowTokens | fleet.KnowLoRA, Running: 106, Waiting: 15, KVUsage: .9, KVMax: .9,
		BlockSize: 16, Blocks: 100, Prompt: 7, RunningLoRA: []string{"a"}, ChangedAt: t0.Add(-time.Minute)}
	s := fleet.State{Endpoint: &fleet.Endpoint{}, Load: &full}
	var got fleet.Load
	if v := (Trust{}).Load(t0, &s, &got); v != Frozen || got.Waiting != 0 || got.Running != 0 || got.KVUsage != 0 || got.KVMax != 0 || got.Known != full.Known || got.Prompt != 7 {
		t.Errorf("%v: %+v", v, got)
	}
	s.Requests = 1
	if v := (Trust{}).Load(t0, &s, &got); v != Fresh || !cmp.Equal(full, got) {
		t.Errorf("%v: %+v", v, got)
	}
	if v := (Trust{}).Load(t0.Add(time.Minute), &s, &got); v != Stale || got.Known != fleet.KnowBlocks || got.KVTokens() != 1600 || got.RunningLoRA != nil {
		t.Errorf("%v: %+v", v, got)
	}
	if n := testing.AllocsPerRun(100, func() { Trust{}.Load(t0, &s, &got) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestB23FrozenGauges: an engine whose gauges froze at full gets a probe within 10 s of its ledger
// falling empty, and is back in rotation with the second page that says idle.
func TestB23FrozenGauges(t *testing.T) {
	for name, frozenFor := range map[string]int{"until it steps": 0, "for ever": 1 << 30} {
		for _, frozen := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d frozen %s", frozen, name), func(t *testing.T) {
				w := newWorld(t, frozen, frozenFor)
				for range 60 * 50 { // 50 requests per second for 60 s
					w.step(20 * time.Millisecond)
				}
				first := w.served[0]
				if len(first) == 0 || first[0] > 10100*time.Millisecond {
					t.Fatalf("first probe of the frozen endpoint at %v", first)
				}
				n := len(first)
				switch {
				case frozenFor == 0 && n < 600:
					t.Errorf("only %d of 3000 requests on the endpoint that was frozen; it is not back in rotation", n)
				case frozenFor > 0 && (n < 5 || n > 6):
					t.Errorf("%d probes in 60 s of a frozen endpoint, want one per 10 s and their duration: %v", n, first)
				}
				if frozen == 3 && frozenFor > 0 && w.total < 15 {
					t.Errorf("all frozen full: %d requests in 60 s, want the probe rate", w.total)
				}
				if frozen == 1 && w.total != 3000 {
					t.Errorf("%d of 3000 requests served", w.total)
				}
			})
		}
	}
}

// world is three endpoints under a policy that believes gauges: least running and waiting, and
// nothing to an endpoint with requests waiting.
type world struct {
	t       *testing.T
	f       fleet.Fleet
	now     time.Time
	frozen  []int // steps each endpoint must make before its gauges are true
	loads   [3]fleet.Load
	open    []job
	served  [3][]time.Duration
	total   int
	scraped time.Time
}

type job struct {
	at  int
	end time.Time
	tk  fleet.Ticket
}

func newWorld(t *testing.T, frozen, steps int) *world {
	w := &world{t: t, now: t0}
	var set []*fleet.Endpoint
	for i := range 3 {
		set = append(set, &fleet.Endpoint{Name: fmt.Sprint(i), Addr: netip.AddrPortFrom(addrOf(i).Addr(), 8000)})
		w.loads[i] = fleet.Load{Known: gauges, ChangedAt: t0}
		w.frozen = append(w.frozen, 0)
		if i < frozen {
			w.frozen[i] = steps + 1
			w.loads[i].Running, w.loads[i].Waiting, w.loads[i].KVUsage, w.loads[i].KVMax = 106, 15, .904, .904
		}
	}
	if _, err := w.f.Sync(w.now, set); err != nil {
		t.Fatal(err)
	}
	return w
}

// step lets d pass: requests end, pages are read every 200 ms, one request arrives.
func (w *world) step(d time.Duration) {
	w.now = w.now.Add(d)
	kept := w.open[:0]
	for _, r := range w.open {
		if r.end.After(w.now) {
			kept = append(kept, r)
			continue
		}
		r.tk.Done(w.now)
		w.frozen[r.at] = max(0, w.frozen[r.at]-1)
	}
	w.open = kept
	var snap fleet.Snapshot
	w.f.Snapshot(w.now, &snap)
	if w.now.Sub(w.scraped) >= 200*time.Millisecond {
		w.scraped = w.now
		for i := range snap.States {
			s, l := &snap.States[i], w.loads[i]
			l.At = w.now
			if w.frozen[i] == 0 {
				if l.Running != s.Requests || l.Waiting != 0 {
					l.ChangedAt = w.now
				}
				l.Running, l.Waiting, l.KVUsage, l.KVMax = s.Requests, 0, .02*float32(s.Requests), .02*float32(s.Requests)
			}
			w.loads[i] = l
			w.f.SetLoad(fleet.Ref{Slot: s.Slot, Instance: s.Instance}, &l)
		}
		w.f.Snapshot(w.now, &snap)
	}
	best, score := -1, int32(1<<30)
	for i := range snap.States {
		var l fleet.Load
		if v := (Trust{}).Load(w.now, &snap.States[i], &l); v.Out() || l.Waiting > 0 {
			continue
		}
		if n := max(l.Running+l.Waiting, snap.States[i].Requests); n < score {
			best, score = i, n
		}
	}
	if best < 0 {
		return
	}
	s := &snap.States[best]
	tk, ok := w.f.Begin(w.now, fleet.Ref{Slot: s.Slot, Instance: s.Instance}, fleet.Work{Prompt: 100})
	if !ok {
		w.t.Fatal("no ticket")
	}
	w.open = append(w.open, job{best, w.now.Add(300 * time.Millisecond), tk})
	w.served[best] = append(w.served[best], w.now.Sub(t0))
	w.total++
}

// TestB24AllStale: pages that do not come are seen, said once in 30 s, and never stop routing.
func TestB24AllStale(t *testing.T) {
	keep := func(b *bench) (in []bool) {
		in = make([]bool, len(b.states()))
		for i := range in {
			in[i] = true
		}
		b.Trust().Keep(time.Now(), b.states(), in)
		return in
	}
	t.Run("pool of one", func(t *testing.T) {
		var h *host
		inBubble(t, func(b *bench) { h = b.add(0, ok(busy)) }, func(b *bench) {
			b.pass(time.Second)
			down := time.Now()
			b.becomes(h, b.hang)
			var stale time.Duration
			for range 100 { // requests go on all the time
				b.pass(100 * time.Millisecond)
				if v := b.verdicts(); v[Stale] == 1 && stale == 0 {
					stale = time.Since(down)
				} else if v[Stale]+v[Fresh] != 1 {
					t.Fatalf("verdicts %v", v)
				}
				if in := keep(b); !in[0] {
					t.Fatalf("the only endpoint is out after %v", time.Since(down))
				}
				if time.Since(down) >= 5*time.Second {
					break
				}
			}
			if stale < DefaultStale-200*time.Millisecond || stale > DefaultStale+200*time.Millisecond {
				t.Errorf("stale after %v", stale)
			}
			b.becomes(h, ok(busy))
			b.pass(DefaultSlowest + DefaultTimeout)
			if v := b.verdicts(); v[Fresh] != 1 {
				t.Errorf("after recovery %v", v)
			}
			if l := b.lines("level=WARN"); len(l) != 1 || !strings.Contains(l[0], "endpoints.yaml:2: e0 10.0.0.0:8000: no page from /metrics in time; its last page counts until it is 3s old") {
				t.Errorf("log: %q", l)
			}
			if l := b.lines("answers on /metrics again after"); len(l) != 1 {
				t.Errorf("log: %q", l)
			}
		})
	})
	t.Run("pool of three", func(t *testing.T) {
		var hs []*host
		inBubble(t, func(b *bench) {
			for i := range 3 {
				hs = append(hs, b.add(i, ok(busy)))
			}
		}, func(b *bench) {
			b.pass(time.Second)
			b.becomes(hs[1], b.hang)
			b.pass(5 * time.Second)
			if v, in := b.verdicts(), keep(b); v[Stale] != 1 || !cmp.Equal(in, []bool{true, false, true}) {
				t.Errorf("one of three stale: %v, kept %v", v, in)
			}
			b.becomes(hs[0], b.hang)
			b.becomes(hs[2], nil)
			b.pass(95 * time.Second)
			if v, in := b.verdicts(), keep(b); v[Stale] != 3 || !cmp.Equal(in, []bool{true, true, true}) {
				t.Errorf("three of three stale: %v, kept %v", v, in)
			}
			for _, name := range []string{"endpoint=e0", "endpoint=e1", "endpoint=e2"} {
				if l := b.lines(name); len(l) < 3 || len(l) > 4 {
					t.Errorf("%d lines about %s in 100 s", len(l), name)
				}
			}
			for i := range hs {
				b.becomes(hs[i], ok(busy))
			}
			b.pass(DefaultSlowest + DefaultTimeout)
			if v := b.verdicts(); v[Fresh] != 3 {
				t.Errorf("after recovery %v", v)
			}
		})
	})
}

// TestMonotonic: ages come from the monotonic clock, so that a step of the wall clock moves none.
func TestMonotonic(t *testing.T) {
	var m memory
	var l fleet.Load
	now := time.Now()
	m.keep(&l, &fleet.Load{}, now, time.Second)
	for _, at := range []time.Time{l.At, l.ChangedAt} {
		if at.String() == at.Round(0).String() {
			t.Errorf("%v has lost its monotonic reading", at)
		}
	}
}

// TestMessages: the sentences of the log.
func TestMessages(t *testing.T) {
	refused := func(b *bench) { b.hosts[addrOf(3)].answer = nil }
	for _, c := range []struct {
		name  string
		setup func(*bench)
		want  string
	}{
		{"refused", refused,
			`level=WARN msg="endpoints.yaml:5: e3 10.0.0.3:8000: connection refused on /metrics; kept out of routing until it answers (7 of 8 ready)" endpoint=e3 cause=refused`},
		{"without a page", func(b *bench) { b.hosts[addrOf(3)].answer = raw("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") },
			`level=WARN msg="endpoints.yaml:5: e3 10.0.0.3:8000: HTTP 404 on /metrics; set metrics: to the path of its page; ranked by its own open requests meanwhile" endpoint=e3 cause=status`},
		{"locked", func(b *bench) {
			b.hosts[addrOf(3)].answer = raw("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
		},
			`level=WARN msg="endpoints.yaml:5: e3 10.0.0.3:8000: HTTP 401 on /metrics; let the page be read without credentials; ranked by its own open requests meanwhile" endpoint=e3 cause=status`},
		{"another engine", func(b *bench) { b.hosts[addrOf(3)].answer = ok(func(int) string { return "sglang:token_usage 1\n" }) },
			`level=WARN msg="endpoints.yaml:5: e3 10.0.0.3:8000: no series of a known engine on /metrics; set engine: and metrics: to what it is; ranked by its own open requests meanwhile" endpoint=e3 cause=no_series`},
		{"not from a file", func(b *bench) { refused(b); b.hosts[addrOf(3)].e.Origin = "" },
			`level=WARN msg="e3 10.0.0.3:8000: connection refused on /metrics; kept out of routing until it answers (7 of 8 ready)" endpoint=e3 cause=refused`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				for i := range 8 {
					b.add(i, ok(busy))
				}
				c.setup(b)
			}, func(b *bench) {
				b.pass(29 * time.Second)
				lines := b.lines("endpoint=e3")
				if len(lines) != 1 || strings.TrimSpace(lines[0]) != c.want {
					t.Errorf("got  %q\nwant %q", lines, c.want)
				}
			})
		})
	}
	t.Run("many", func(t *testing.T) {
		inBubble(t, func(b *bench) {
			for i := range 100 {
				b.add(i, nil)
			}
		}, func(b *bench) {
			b.pass(29 * time.Second)
			lines := b.lines("level=WARN")
			if len(lines) != maxMessages || !strings.Contains(lines[maxMessages-1], "no further lines for 30s") ||
				!strings.Contains(lines[0], "all stay in routing, ranked by their own open requests (0 of 100 ready)") {
				t.Errorf("%d lines: %q", len(lines), lines)
			}
		})
	})
}

func TestValidate(t *testing.T) {
	var f fleet.Fleet
	for want, s := range map[string]*Scraper{
		"no fleet":         {},
		"1ms is too short": {Fleet: &f, Interval: time.Millisecond},
		"negative":         {Fleet: &f, Timeout: -1},
		"1s is not longer than the longest interval 1s": {Fleet: &f, Stale: time.Second},
		"": {Fleet: &f, Interval: time.Minute},
	} {
		err := s.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
		if want != "" {
			if err := s.Run(t.Context()); err == nil {
				t.Errorf("%q: Run accepted it", want)
			}
		}
	}
	slow := Scraper{Fleet: &f, Interval: time.Minute}
	if tr := slow.Trust(); tr.Stale != 62*time.Second {
		t.Errorf("stale after %v at one scrape a minute", tr.Stale)
	}
}
