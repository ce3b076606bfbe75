package scrape

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// network is a set of engines reached through pipes, for tests under a fake clock.
type network struct {
	t    *testing.T
	done chan struct{} // closed at the end: whoever hangs lets go

	mu    sync.Mutex
	hosts map[netip.AddrPort]*host
	open  int // connections
}

// host is one engine. answer writes a whole raw answer, or hangs, or returns false to have the
// connection closed.
type host struct {
	n      *network
	e      *fleet.Endpoint
	answer func(c net.Conn, n int) bool
	asked  []time.Time
	paths  []string
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, done: make(chan struct{}), hosts: map[netip.AddrPort]*host{}}
}

// add puts an engine on the network under the name e<i>.
func (n *network) add(i int, answer func(c net.Conn, n int) bool) *host {
	h := &host{n: n, answer: answer, e: &fleet.Endpoint{
		Name: fmt.Sprintf("e%d", i), Addr: addrOf(i),
		Engine: "vllm", Model: "demo", Origin: fmt.Sprintf("endpoints.yaml:%d", i+2),
	}}
	n.mu.Lock()
	n.hosts[h.e.Addr] = h
	n.mu.Unlock()
	return h
}

// becomes changes how a host answers.
func (n *network) becomes(h *host, answer func(c net.Conn, n int) bool) {
	n.mu.Lock()
	h.answer = answer
	n.mu.Unlock()
}

func (n *network) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[addr]
	if h == nil || h.answer == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	n.open++
	go n.serve(h, theirs)
	return ours, nil
}

func (n *network) serve(h *host, c net.Conn) {
	defer func() {
		c.Close()
		n.mu.Lock()
		n.open--
		n.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		n.mu.Lock()
		h.asked = append(h.asked, time.Now())
		h.paths = append(h.paths, r.URL.Path)
		answer, k := h.answer, len(h.asked)
		n.mu.Unlock()
		if answer == nil || !answer(c, k) {
			return
		}
	}
}

// hang answers nothing until the test ends.
func (n *network) hang(net.Conn, int) bool {
	<-n.done
	return false
}

// after delays an answer.
func (n *network) after(d time.Duration, answer func(net.Conn, int) bool) func(net.Conn, int) bool {
	return func(c net.Conn, k int) bool {
		select {
		case <-time.After(d):
			return answer(c, k)
		case <-n.done:
			return false
		}
	}
}

// ok answers with a page in chunks.
func ok(page func(n int) string) func(net.Conn, int) bool {
	return func(c net.Conn, n int) bool {
		p := page(n)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(p), p)
		return err == nil
	}
}

// raw answers with fixed bytes.
func raw(s string) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool {
		_, err := io.WriteString(c, s)
		return err == nil
	}
}

// vllmPage is a page with the given gauges and counters.
func vllmPage(running, waiting int, usage any, tokens int) string {
	return fmt.Sprintf("vllm:num_requests_running{model_name=\"demo\"} %d\nvllm:num_requests_waiting{model_name=\"demo\"} %d\n"+
		"vllm:kv_cache_usage_perc{model_name=\"demo\"} %v\nvllm:prompt_tokens_total %d\nvllm:generation_tokens_total %d\n", running, waiting, usage, tokens, tokens)
}

func busy(n int) string { return vllmPage(3, 0, .2, n) } // its counters move with every page
func quiet(int) string  { return vllmPage(0, 0, 0, 7) }

// bench is a scraper running on a network.
type bench struct {
	*network
	*Scraper
	fleet fleet.Fleet
	log   lockedBuffer
	set   []*fleet.Endpoint
}

// inBubble runs a test of the loop under a fake clock. setup fills the network and may change the
// scraper; test runs beside the loop. At the end no connection is left.
func inBubble(t *testing.T, setup func(*bench), test func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{network: newNetwork(t)}
		b.Scraper = &Scraper{Fleet: &b.fleet, Dial: b.network.dial}
		b.Log = slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		setup(b)
		b.sync()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		synctest.Wait()
		test(b)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		close(b.done)
		synctest.Wait()
		if n := b.connections(); n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}

// sync makes the fleet what set says, or the whole network in order of addresses where set is nil.
func (b *bench) sync() {
	set := b.set
	if set == nil {
		for i := range 1 << 12 {
			if h := b.hosts[addrOf(i)]; h != nil {
				set = append(set, h.e)
			}
		}
	}
	if _, err := b.fleet.Sync(time.Now(), set); err != nil {
		b.t.Fatal(err)
	}
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// states is the fleet now.
func (b *bench) states() []fleet.State {
	var snap fleet.Snapshot
	b.fleet.Snapshot(time.Now(), &snap)
	return snap.States
}

// load is what endpoint i of the fleet has.
func (b *bench) load(i int) *fleet.Load { return b.states()[i].Load }

// verdicts counts the endpoints by verdict.
func (b *bench) verdicts() map[Verdict]int {
	m := map[Verdict]int{}
	for _, s := range b.Stats(time.Now(), nil) {
		m[s.Verdict]++
	}
	return m
}

// lines are the log so far.
func (b *bench) lines(containing string) (out []string) {
	for l := range strings.Lines(b.log.String()) {
		if strings.Contains(l, containing) {
			out = append(out, l)
		}
	}
	return out
}

// lockedBuffer is a buffer that is written and read by different goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// times is how often the host was asked.
func (h *host) times() int {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	return len(h.asked)
}

// path is what the host was last asked for.
func (h *host) path() string {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	return h.paths[len(h.paths)-1]
}

// connections are those now open.
func (n *network) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

// since are the times a host was asked, in ms since the given one.
func (h *host) since(t0 time.Time) (ms []int64) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	for _, t := range h.asked {
		ms = append(ms, t.Sub(t0).Milliseconds())
	}
	return ms
}

func addrOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8000)
}
