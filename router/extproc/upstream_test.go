package extproc_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// upstream is a model server that tells what it was sent.
type upstream struct {
	addr     string
	requests atomic.Int32
	gone     chan struct{} // one for every client that left within a stream

	mu   sync.Mutex
	mode string // "": answer; "503", "reset": fail
}

// echo is what an upstream says of a request.
type echo struct {
	Upstream string      `json:"upstream"`
	Method   string      `json:"method"`
	Path     string      `json:"path"`
	Length   int64       `json:"length"` // content-length; -1: chunked
	Bytes    int         `json:"bytes"`
	SHA      string      `json:"sha"`
	Headers  http.Header `json:"headers"`
	Body     string      `json:"body"` // of small ones
	Usage    any         `json:"usage"`
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{gone: make(chan struct{}, 100)}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	u.addr = srv.Listener.Addr().String()
	return u
}

func (u *upstream) fail(mode string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mode = mode
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.requests.Add(1)
	u.mu.Lock()
	mode := u.mode
	u.mu.Unlock()
	if r.Header.Get("Upgrade") == "websocket" {
		u.websocket(w)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch {
	case mode == "503":
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
	case mode == "reset":
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	case strings.Contains(string(body), `"stream":true`):
		u.stream(w, r)
	default:
		sum := sha256.Sum256(body)
		e := echo{Upstream: u.addr, Method: r.Method, Path: r.URL.Path, Length: r.ContentLength, Bytes: len(body), SHA: hex.EncodeToString(sum[:]), Headers: r.Header,
			Usage: map[string]int{"prompt_tokens": 9, "completion_tokens": 4}}
		if len(body) < 1000 {
			e.Body = string(body)
		}
		w.Header().Set("content-type", "application/json")
		_ = json.NewEncoder(w).Encode(e)
	}
}

// stream sends a hundred tokens, usage cut across two writes, and the end marker.
func (u *upstream) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("content-type", "text/event-stream")
	flush := func(s string) {
		_, _ = io.WriteString(w, s)
		w.(http.Flusher).Flush()
	}
	for i := range 100 {
		select {
		case <-r.Context().Done():
			u.gone <- struct{}{}
			return
		case <-time.After(time.Millisecond):
		}
		flush(fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"t%d \"}}]}\n\n", i))
		if i == 2 && r.Header.Get("x-slow") != "" {
			<-r.Context().Done()
			u.gone <- struct{}{}
			return
		}
	}
	flush(`data: {"choices":[],"usage":{"prompt_tok`)
	time.Sleep(5 * time.Millisecond)
	flush("ens\":11,\"completion_tokens\":100}}\n\ndata: [DONE]\n\n")
}

// websocket switches protocols and echoes lines.
func (u *upstream) websocket(w http.ResponseWriter) {
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	rw.Flush()
	for lines := bufio.NewReader(rw); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString("echo " + line)
		rw.Flush()
	}
}
