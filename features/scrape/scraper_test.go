package scrape

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

// TestIntervals: an engine with work is asked every 200 ms, an idle one every second, a failing one
// after growing pauses of at most a second, and all of one kind at the same instants.
func TestIntervals(t *testing.T) {
	var t0 time.Time
	var hosts []*host
	inBubble(t, func(b *bench) {
		t0 = time.Now()
		for i, answer := range []func(net.Conn, int) bool{ok(busy), ok(quiet), ok(quiet), raw("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), ok(busy)} {
			hosts = append(hosts, b.add(i, answer))
		}
	}, func(b *bench) {
		b.pass(3100 * time.Millisecond)
		each := func(step int64) (ms []int64) {
			for at := int64(0); at <= 3100; at += step {
				ms = append(ms, at)
			}
			return ms
		}
		idle := append([]int64{0, 200}, each(1000)[1:]...)
		for i, want := range [][]int64{each(200), idle, idle, {0, 200, 400, 800, 1000, 2000, 3000}, each(200)} {
			if diff := cmp.Diff(want, hosts[i].since(t0)); diff != "" {
				t.Errorf("endpoint %d asked at ms (-want +got):\n%s", i, diff)
			}
		}
		// A request of ours makes an idle endpoint due at the next tick.
		s := b.states()[1]
		tk, _ := b.fleet.Begin(time.Now(), fleet.Ref{Slot: s.Slot, Instance: s.Instance}, fleet.Work{Prompt: 7})
		b.pass(400 * time.Millisecond)
		if got := hosts[1].since(t0); !slices.Equal(got[len(got)-2:], []int64{3200, 3400}) {
			t.Errorf("with a request of ours asked at %v", got)
		}
		if l := b.load(1); l.Own != 1 || l.Known == 0 {
			t.Errorf("own requests at the scrape: %+v", l)
		}
		tk.Done(time.Now())
		for _, st := range b.Stats(time.Now(), nil) {
			if want := map[string]time.Duration{"e0": 200 * time.Millisecond, "e1": time.Second, "e3": time.Second}[st.Name]; want != 0 && st.Every != want {
				t.Errorf("%s: every %v, want %v", st.Name, st.Every, want)
			}
		}
		if n := b.connections(); n != len(hosts) {
			t.Errorf("%d connections for %d endpoints", n, len(hosts))
		}
	})
}

// TestSlowEndpointHoldsUpNobody: an engine that takes 600 ms for its page is read all the same, and
// only once keeps the others waiting, for the grace.
func TestSlowEndpointHoldsUpNobody(t *testing.T) {
	var slow, fast *host
	inBubble(t, func(b *bench) {
		slow = b.add(0, b.after(600*time.Millisecond, ok(busy)))
		fast = b.add(1, ok(busy))
	}, func(b *bench) {
		for range 50 {
			b.pass(100 * time.Millisecond)
			if age := time.Since(b.load(1).At); age > 200*time.Millisecond+grace {
				t.Fatalf("the fast endpoint's page is %v old", age)
			}
		}
		if n := fast.times(); n < 25 {
			t.Errorf("fast endpoint asked %d times in 5 s", n)
		}
		st := b.Stats(time.Now(), nil)[0]
		if st.Pages < 5 || st.Failures != [NumCauses]uint64{} || st.Took < 600*time.Millisecond || b.connections() != 2 {
			t.Errorf("slow endpoint, asked %d times: %+v", slow.times(), st)
		}
	})
}

// TestB18HeldValue: a refused value leaves the old one with its old time, until it is stale.
func TestB18HeldValue(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.add(0, ok(func(n int) string {
			if n == 1 {
				return vllmPage(3, 4, .42, n)
			}
			return vllmPage(5, 6, "NaN", n)
		}))
	}, func(b *bench) {
		first := b.load(0)
		b.pass(700 * time.Millisecond)
		l := b.load(0)
		if l.Running != 5 || l.Waiting != 6 || l.KVUsage != .42 || !l.Known.Has(gauges) || l.Held != fleet.KnowKV || !l.HeldAt.Equal(first.At) {
			t.Errorf("held: %+v", l)
		}
		if st := b.Stats(time.Now(), nil)[0]; st.Refused != 3 || st.Missing != 0 || st.Pages != 4 || st.Verdict != Fresh {
			t.Errorf("%+v", st)
		}
		b.pass(3 * time.Second)
		if l := b.load(0); l.Known.Has(fleet.KnowKV) || l.Held != 0 || l.KVUsage != 0 || l.Running != 5 {
			t.Errorf("held after it is stale: %+v", l)
		}
	})
}

// TestB19MissingGauge: a page without its KV gauge is counted, and endpoints with unusable pages are
// not taken for idle.
func TestB19MissingGauge(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.add(0, ok(func(n int) string {
			return fmt.Sprintf("vllm:num_requests_waiting %d\nvllm:num_requests_running 1\n", n)
		}))
		b.add(1, raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"))
	}, func(b *bench) {
		b.pass(500 * time.Millisecond)
		st := b.Stats(time.Now(), nil)
		if st[0].Missing != st[0].Pages || st[0].Pages == 0 || st[0].Refused != 0 || st[0].Error != "" {
			t.Errorf("%+v", st[0])
		}
		if st[1].Failures[NoSeries] == 0 || st[1].Pages != 0 || st[1].Verdict != Blind || st[1].Age >= 0 {
			t.Errorf("%+v", st[1])
		}
		if l := b.load(1); l.Known != 0 || !l.At.IsZero() || l.Errors == 0 || l.Unreachable {
			t.Errorf("JSON page: %+v", l)
		}
	})
}

// TestBadAnswers: what an endpoint can answer instead of a page, what it is counted as, and that
// nothing of it reaches the load.
func TestBadAnswers(t *testing.T) {
	page := vllmPage(9, 9, .9, 9)
	zip := func(p string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, p)
		z.Close()
		return b.String()
	}
	head := func(n int, more string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n", n, more)
	}
	zipped := zip(page)
	bomb := zip(strings.Repeat("vllm:num_requests_waiting 1\n", 1<<17))
	random := make([]byte, maxZipped+1)
	for i := range random {
		random[i] = byte(rand.Int())
	}
	endless := func(c net.Conn, _ int) bool { // up to 200 MiB
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 200 << 4 {
			if _, err := fmt.Fprintf(c, "10000\r\n%s\r\n", strings.Repeat("# no such metric\n", 1<<12)[:1<<16]); err != nil {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		name   string
		answer func(net.Conn, int) bool
		cause  Cause
		text   string // of the error
		absent bool   // no HTTP answer at all
	}{
		{"nobody there", nil, Refused, "connection refused on /metrics", true},
		{"401", raw("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), BadStatus, "HTTP 401 on /metrics", false},
		{"404", raw("HTTP/1.1 404 Not Found\r\nContent-Length: " + fmt.Sprint(len(page)) + "\r\n\r\n" + page), BadStatus, "HTTP 404 on /metrics", false},
		{"500", raw("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"), BadStatus, "HTTP 500 on /metrics", false},
		{"redirect", raw("HTTP/1.1 307 Temporary Redirect\r\nLocation: /metrics/\r\nContent-Length: 0\r\n\r\n"), BadStatus, "HTTP 307 on /metrics", false},
		{"HTML", raw(head(15, "") + "<html>\n</html>\n"), NoSeries, "no series of a known engine on /metrics", false},
		{"cut by length", func(c net.Conn, _ int) bool { io.WriteString(c, head(len(page)+1, "")+page); return false }, CutShort, "the page is cut short on /metrics", false},
		{"cut in a line", raw(head(len(page)-1, "") + page[:len(page)-1]), CutShort, "the page is cut short on /metrics", false},
		{"OpenMetrics without end", raw(head(len(page), "Content-Type: application/openmetrics-text; version=1.0.0\r\n") + page), CutShort, "the page is cut short on /metrics", false},
		{"cut gzip", raw(head(len(zipped)-9, "Content-Encoding: gzip\r\n") + zipped[:len(zipped)-9]), CutShort, "cut short", false},
		{"no gzip", raw(head(len(page), "Content-Encoding: gzip\r\n") + page), CutShort, "cut short", false},
		{"gzip bomb", raw(head(len(bomb), "Content-Encoding: gzip\r\n") + bomb), TooLarge, "the page is too large on /metrics", false},
		{"large gzip", raw(head(len(random), "Content-Encoding: gzip\r\n") + string(random)), TooLarge, "the page is too large on /metrics", false},
		{"announced 200 MiB", raw(head(200<<20, "")), TooLarge, "the page is too large on /metrics", false},
		{"200 MiB in chunks", endless, TooLarge, "the page is too large on /metrics", false},
		{"brotli", raw(head(4, "Content-Encoding: br\r\n") + "abcd"), BadAnswer, "content encoding", false},
		{"another protocol", raw("SSH-2.0-OpenSSH_9.6\r\n\r\n"), BadAnswer, "no HTTP/1.1 answer", true},
		{"closed at once", func(net.Conn, int) bool { return false }, Broken, "connection broken on /metrics", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(b *bench) { b.add(0, c.answer); b.MaxPage = 1 << 20 }, func(b *bench) {
				b.pass(900 * time.Millisecond)
				st, l := b.Stats(time.Now(), nil)[0], b.load(0)
				if st.Failures[c.cause] < 4 || st.Pages != 0 || !strings.Contains(st.Error, c.text) {
					t.Errorf("want cause %v, got %+v", c.cause, st)
				}
				if l.Known != 0 || !l.At.IsZero() || l.Waiting != 0 || l.Unreachable != c.absent || int(l.Errors) < 4 {
					t.Errorf("load %+v", l)
				}
				if want := map[bool]Verdict{true: Absent, false: Blind}[c.absent]; st.Verdict != want {
					t.Errorf("verdict %v, want %v", st.Verdict, want)
				}
				if len(b.lines("")) != 1 {
					t.Errorf("log:\n%s", b.log.String())
				}
			})
		})
	}
}

// TestGoodAnswers: framings of one page that all mean the same.
func TestGoodAnswers(t *testing.T) {
	page := vllmPage(9, 8, .5, 7)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, page)
	z.Close()
	for name, answer := range map[string]func(net.Conn, int) bool{
		"chunked": ok(func(int) string { return page }),
		"length":  raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)),
		"gzip":    raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", zipped.Len(), zipped.String())),
		"OpenMetrics": raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\nContent-Length: %d\r\n\r\n%s# EOF\n",
			len(page)+6, page)),
		"until close": func(c net.Conn, _ int) bool { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"+page); return false },
		"byte by byte": func(c net.Conn, _ int) bool {
			for _, b := range []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
			}
			return true
		},
		// The server closes kept connections: no failure, the request is sent again on a new one.
		"kept and closed": func(c net.Conn, _ int) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(page), page)
			return false
		},
		"closes politely": raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(page), page)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) { b.add(0, answer) }, func(b *bench) {
				b.pass(1100 * time.Millisecond)
				st, l := b.Stats(time.Now(), nil)[0], b.load(0)
				if st.Pages != 6 || st.Failures != [NumCauses]uint64{} || l.Running != 9 || l.Waiting != 8 || l.KVUsage != .5 || l.Prompt != 7 {
					t.Errorf("%+v\n%+v", st, l)
				}
			})
		})
	}
}

// TestCutPageKeepsTheOldLoad: after a good page, a cut one changes nothing but the count of errors.
func TestCutPageKeepsTheOldLoad(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.add(0, func(c net.Conn, n int) bool {
			if n == 1 {
				return ok(busy)(c, n)
			}
			p := vllmPage(50, 50, .9, 99)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(p), p[:len(p)/2])
			return false
		})
	}, func(b *bench) {
		first := *b.load(0)
		b.pass(500 * time.Millisecond)
		want := first
		want.Errors = 2
		if diff := cmp.Diff(want, *b.load(0)); diff != "" || first.Running != 3 {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestEngineRestart: a counter that goes back is a restart, and there is no rate across it.
func TestEngineRestart(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.add(0, ok(func(n int) string {
			if n < 4 {
				return vllmPage(1, 0, .1, 1000*n)
			}
			return vllmPage(1, 0, .1, 10*n)
		}))
	}, func(b *bench) {
		var loads []*fleet.Load
		for range 6 {
			loads = append(loads, b.load(0))
			b.pass(200 * time.Millisecond)
		}
		for i, want := range []uint32{0, 0, 0, 1, 1, 1} {
			if loads[i].Restarts != want {
				t.Errorf("page %d: %d restarts, want %d", i+1, loads[i].Restarts, want)
			}
		}
		if r, ok := Between(loads[0], loads[2]); !ok || r.Prompt != 5000 || r.Generated != 5000 || r.Known != fleet.KnowTokens {
			t.Errorf("rates %+v, %v", r, ok)
		}
		if r, ok := Between(loads[2], loads[3]); ok {
			t.Errorf("rates across a restart: %+v", r)
		}
		if r, ok := Between(loads[0], loads[5]); ok {
			t.Errorf("rates across a restart: %+v", r)
		}
		if r, ok := Between(loads[3], loads[5]); !ok || r.Generated != 50 {
			t.Errorf("rates after it: %+v, %v", r, ok)
		}
	})
}

// TestFollowsFleet: endpoints that join are asked at the next tick, those that leave are let go, a
// new path is asked for at once.
func TestFollowsFleet(t *testing.T) {
	inBubble(t, func(b *bench) {
		for i := range 3 {
			b.add(i, ok(busy))
		}
		b.set = []*fleet.Endpoint{b.hosts[addrOf(0)].e, b.hosts[addrOf(1)].e}
	}, func(b *bench) {
		b.pass(450 * time.Millisecond)
		if b.connections() != 2 || b.hosts[addrOf(2)].times() != 0 {
			t.Fatalf("%d connections", b.connections())
		}
		moved := *b.hosts[addrOf(1)].e
		moved.Metrics = "/prometheus/metrics"
		trt := *b.hosts[addrOf(2)].e
		trt.Engine = "trtllm"
		b.set = []*fleet.Endpoint{&moved, &trt}
		b.sync()
		left := b.hosts[addrOf(0)].times()
		b.pass(400 * time.Millisecond)
		if b.connections() != 2 || b.hosts[addrOf(0)].times() != left {
			t.Errorf("%d connections; the endpoint that left was asked %d more times", b.connections(), b.hosts[addrOf(0)].times()-left)
		}
		for i := 1; i <= 2; i++ {
			if p := b.hosts[addrOf(i)].path(); p != "/prometheus/metrics" {
				t.Errorf("endpoint %d asked for %v", i, p)
			}
		}
		b.set = []*fleet.Endpoint{}
		b.sync()
		b.pass(300 * time.Millisecond)
		if b.connections() != 0 || len(b.Stats(time.Now(), nil)) != 0 {
			t.Errorf("an empty fleet has %d connections", b.connections())
		}
	})
}

// TestHostilePath: a path cannot smuggle anything into the request.
func TestHostilePath(t *testing.T) {
	for path, want := range map[string]string{
		"": "/metrics", "/m": "/m", "/m?a=b": "/m?a=b", "metrics": "/metrics", "http://x/": "/metrics",
		"/m HTTP/1.1\r\nX: y": "/metrics", "/m\n": "/metrics", "/ü": "/metrics",
	} {
		var tg target
		tg.describe(&fleet.Endpoint{Addr: addrOf(1), Metrics: path})
		if tg.path != want || !bytes.HasPrefix(tg.request, []byte("GET "+want+" HTTP/1.1\r\nHost: 10.0.0.1:8000\r\n")) {
			t.Errorf("path %q: %q", path, tg.request)
		}
	}
}

// TestChaos: 60 s of endpoints that join, leave and answer anything; what they say stays possible,
// and nothing is left behind.
func TestChaos(t *testing.T) {
	rng, dice := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(8, 8))
	inBubble(t, func(b *bench) {
		answers := []func(net.Conn, int) bool{
			ok(busy), ok(quiet), nil, b.hang, b.after(80*time.Millisecond, ok(busy)), b.after(3*time.Second, ok(busy)),
			raw("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), raw("junk\r\n\r\n"), func(net.Conn, int) bool { return false },
			ok(func(int) string { return vllmPage(1, 1, "NaN", 1) }), ok(func(int) string { return "[]" }),
		}
		for i := range 40 {
			b.add(i, func(c net.Conn, n int) bool {
				b.network.mu.Lock()
				a := answers[dice.IntN(len(answers))]
				b.network.mu.Unlock()
				return a != nil && a(c, n)
			})
		}
	}, func(b *bench) {
		for range 60 {
			b.set = []*fleet.Endpoint{}
			for i := range 40 {
				if rng.IntN(3) > 0 {
					b.set = append(b.set, b.hosts[addrOf(i)].e)
				}
			}
			b.sync()
			b.pass(time.Second)
			for _, s := range b.states() {
				sane(t, s.Load)
			}
			keep := make([]bool, len(b.set))
			for i := range keep {
				keep[i] = true
			}
			if b.Trust().Keep(time.Now(), b.states(), keep); len(keep) > 0 && !slices.Contains(keep, true) {
				t.Fatal("no endpoint left")
			}
		}
		if n := len(b.lines("cause=")); n > 3*maxMessages {
			t.Errorf("%d lines about failures in 60 s", n)
		}
	})
}
