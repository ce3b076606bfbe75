package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a model server of numbers: it streams tokens as told and has a metrics page.
type engine struct {
	*httptest.Server
	name    string
	began   atomic.Int64
	ended   atomic.Int64
	page    atomic.Pointer[string] // of metrics; nil: status 500
	release chan struct{}          // held answers go on when it is closed
}

const enginePage = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="demo"} 1
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="demo"} 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="demo"} 0.25
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1
`

func newEngine(t *testing.T, name string) *engine {
	t.Helper()
	e := &engine{name: name, release: make(chan struct{})}
	page := enginePage
	e.page.Store(&page)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		if p := e.page.Load(); p != nil {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, *p)
			return
		}
		http.Error(w, "no page", http.StatusInternalServerError)
	})
	mux.HandleFunc("POST /v1/chat/completions", e.chat)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":[]}`) })
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

// chat streams three tokens. A prompt that says "hold" waits after the first for release, one that
// says "for ever" for the end of the request.
func (e *engine) chat(w http.ResponseWriter, r *http.Request) {
	e.began.Add(1)
	defer e.ended.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("x-engine", e.name)
	flush := http.NewResponseController(w)
	send := func(s string) {
		_, _ = io.WriteString(w, "data: "+s+"\n\n")
		_ = flush.Flush()
	}
	send(`{"choices":[{"index":0,"delta":{"content":"one"}}]}`)
	switch {
	case strings.Contains(string(body), "for ever"):
		<-r.Context().Done()
		return
	case strings.Contains(string(body), "hold"):
		select {
		case <-e.release:
		case <-r.Context().Done():
			return
		}
	}
	send(`{"choices":[{"index":0,"delta":{"content":"two"}}]}`)
	send(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	send(`{"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`)
	send(`[DONE]`)
}

func (e *engine) addr() netip.AddrPort { return netip.MustParseAddrPort(e.Listener.Addr().String()) }

func endpoints(engines ...*engine) []*fleet.Endpoint {
	out := []*fleet.Endpoint{}
	for _, e := range engines {
		out = append(out, &fleet.Endpoint{Name: e.name, Addr: e.addr(), Model: "demo", Engine: "vllm", TP: 1})
	}
	return out
}

// lab is a service behind a gateway, running.
type lab struct {
	*Service
	t       *testing.T
	front   *httptest.Server
	drain   context.CancelFunc
	done    chan struct{}
	err     error // of Run, once done
	client  *http.Client
	gateway *gateway.Gateway
}

func testConfig() *config.Config {
	c := config.Default()
	c.Policy = "weighted"
	c.Listen = config.Listen{ExtProc: "127.0.0.1:0", Health: "127.0.0.1:0", Admin: "127.0.0.1:0"}
	c.Fleet.Scrape.Interval = 50 * time.Millisecond
	c.Answer.DecisionHeader = true
	c.Drain.Timeout = 0
	return c
}

func newLab(t *testing.T, c *config.Config, d Deps) *lab {
	t.Helper()
	if d.Log == nil && testing.Verbose() {
		d.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &lab{Service: s, t: t, drain: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.err = s.Run(ctx)
	}()
	if l.gateway, err = gateway.New(gateway.Config{EPP: s.Addrs().ExtProc}); err != nil {
		t.Fatal(err)
	}
	l.front = httptest.NewServer(l.gateway)
	l.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{}).DialContext}}
	t.Cleanup(l.close)
	return l
}

func (l *lab) close() {
	l.Stop()
	l.drain()
	<-l.done
	l.client.CloseIdleConnections()
	l.front.Close()
	_ = l.gateway.Close()
	if l.err != nil {
		l.t.Errorf("Run: %v", l.err)
	}
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (l *lab) post(ctx context.Context, prompt string) reply {
	return l.send(ctx, "/v1/chat/completions", fmt.Sprintf(`{"model":"demo","stream":true,"messages":[{"role":"user","content":%q}]}`, prompt))
}

func (l *lab) send(ctx context.Context, path, body string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.front.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

func (a reply) complete() bool {
	return a.err == nil && a.status == http.StatusOK && strings.HasSuffix(a.body, "data: [DONE]\n\n")
}

// start sends a request and returns once its first token has come; the rest is sent on the channel.
func (l *lab) start(prompt string) <-chan reply {
	l.t.Helper()
	rest := make(chan reply, 1)
	first := make(chan struct{})
	go func() {
		body := fmt.Sprintf(`{"model":"demo","stream":true,"messages":[{"role":"user","content":%q}]}`, prompt)
		resp, err := l.client.Post(l.front.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			close(first)
			rest <- reply{err: err}
			return
		}
		defer resp.Body.Close()
		r := bufio.NewReader(resp.Body)
		line, err := r.ReadString('\n')
		close(first)
		if err != nil {
			rest <- reply{status: resp.StatusCode, body: line, err: err}
			return
		}
		b, err := io.ReadAll(r)
		rest <- reply{status: resp.StatusCode, header: resp.Header, body: line + string(b), err: err}
	}()
	<-first
	return rest
}

// inflight sums the ledger, endpoints that have left included.
func (l *lab) inflight() int {
	var snap fleet.Snapshot
	l.fleet.Snapshot(time.Now(), &snap)
	n := 0
	for _, s := range append(snap.States, l.fleet.Leaving(nil)...) {
		n += int(s.Requests)
	}
	return n
}

// settled waits until nothing is in flight. The end of an answer reaches the client before the ledger.
func (l *lab) settled() {
	l.t.Helper()
	l.eventually("an empty ledger", func() bool { return l.inflight() == 0 })
}

// eventually polls until ok or the test's patience is over.
func (l *lab) eventually(what string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Errorf("waited in vain for %s", what)
			_, page := l.admin("/endpoints")
			l.t.Fatalf("endpoints: %s", page)
		}
	}
}

// admin asks the admin address.
func (l *lab) admin(path string) (status int, body string) {
	l.t.Helper()
	resp, err := l.client.Get("http://" + l.Addrs().Admin + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// metric returns the value of the series with that exact name and labels, or "".
func (l *lab) metric(series string) string {
	l.t.Helper()
	_, page := l.admin("/metrics")
	for line := range strings.Lines(page) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// traffic sends requests from n clients until stop is called, which returns every answer.
func (l *lab) traffic(n int) (stop func() []reply) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var all []reply
	var wg sync.WaitGroup
	for c := range n {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				a := l.post(context.Background(), fmt.Sprintf("client %d asks for the %dth time", c, i))
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	return func() []reply {
		cancel()
		wg.Wait()
		return all
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
