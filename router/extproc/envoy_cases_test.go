package extproc_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router/extproc"
)

// TestEnvoy runs the cases that only a real gateway can judge, under their numbers in the protocol's
// contract, against one Envoy.
func TestEnvoy(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *site)
	}{
		{"P01SmallPostInEveryMode", everyMode},
		{"P09WebsocketUpgrade", websocketUpgrade},
		{"P12BufferedMutationContentLength", bufferedRewrite},
		{"P15ContentLengthGuard", contentLengthGuard},
		{"P31DecisionDeadline", decisionDeadline},
		{"P33ClientCancelsMidStream", clientCancels},
		{"P34StreamPassesThrough", streamPassesThrough},
		{"P40FailOpenMatrix", failOpenMatrix},
		{"P40FallbackRetry", fallbackRetry},
		{"B48SpoofedDestination", spoofedDestination},
		{"DestinationMethods", destinationMethods},
		{"Refusals", refusals},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			s.order(0, 1, 2)
			for _, u := range s.ups {
				u.fail("")
				u.requests.Store(0)
			}
			s.server.SetAnswer(extproc.Answer{Endpoints: 3, DecisionHeader: true})
			c.run(t, s)
		})
	}
}

var chatBody = []byte(`{"model":"demo","messages":[{"role":"user","content":"hello"}]}`)

// do sends a request through a listener.
func (s *site) do(listener, method, path string, body []byte, kv ...string) (*http.Response, []byte) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.ports[listener]+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(kv); i += 2 {
		req.Header.Add(kv[i], kv[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", listener, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v after %d bytes", listener, path, err, len(b))
	}
	return resp, b
}

// echoed sends a chat request and returns what the upstream saw.
func (s *site) echoed(listener, path string, body []byte, kv ...string) echo {
	s.t.Helper()
	resp, b := s.do(listener, http.MethodPost, path, body, kv...)
	var e echo
	if err := json.Unmarshal(b, &e); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: status %d, body %q: %v", listener, resp.StatusCode, b, err)
	}
	return e
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

const chatPath = "/v1/chat/completions"

func large(n int) []byte {
	return []byte(`{"model":"demo","messages":[{"role":"user","content":"` + strings.Repeat("lorem ipsum ", n/12) + `"}]}`)
}

func everyMode(t *testing.T, s *site) {
	for _, l := range listeners {
		if l.EPP != "epp" {
			continue
		}
		for _, body := range [][]byte{chatBody, large(300_000)} {
			e := s.echoed(l.Name, chatPath, body)
			if e.Upstream != s.ups[0].addr || e.SHA != sum(body) {
				t.Errorf("%s: %d bytes at %s, want %d at %s", l.Name, e.Bytes, e.Upstream, len(body), s.ups[0].addr)
			}
			o := s.idle(1)[0]
			if o.Cause != fleet.Complete || o.Endpoint != "u1" || o.Status != 200 {
				t.Errorf("%s: %v at %s, status %d", l.Name, o.Cause, o.Endpoint, o.Status)
			}
			if seen := l.Response != "NONE" && l.Request != "NONE" && l.Request != "STREAMED"; seen && (o.PromptTokens != 9 || o.OutputTokens != 4) {
				t.Errorf("%s: usage %d/%d", l.Name, o.PromptTokens, o.OutputTokens)
			}
		}
		// header-only requests and answers
		if resp, _ := s.do(l.Name, http.MethodGet, "/v1/models", nil); resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get(extproc.DecisionHeader), "d-") {
			t.Errorf("%s: GET: status %d, headers %v", l.Name, resp.StatusCode, resp.Header)
		}
		if resp, _ := s.do(l.Name, http.MethodHead, "/v1/models", nil); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: HEAD: status %d", l.Name, resp.StatusCode)
		}
		for _, o := range s.idle(2) {
			if o.Cause != fleet.Complete {
				t.Errorf("%s: header-only request: %v", l.Name, o.Cause)
			}
		}
	}
}

func websocketUpgrade(t *testing.T, s *site) {
	for _, l := range []string{"duplex", "half", "streamed", "none"} { // with BUFFERED the gateway itself waits for ever
		c, err := net.Dial("tcp", s.ports[l])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "GET /v1/realtime HTTP/1.1\r\nHost: gw.example.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: response %v, error %v", l, resp, err)
			continue
		}
		for i := range 3 {
			fmt.Fprintf(c, "frame %d\n", i)
			if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("echo frame %d\n", i) {
				t.Errorf("%s: %q, %v", l, line, err)
			}
		}
		c.Close()
		s.idle(1)
	}
}

func bufferedRewrite(t *testing.T, s *site) {
	body := []byte(`{"model":"alias","messages":[{"role":"user","content":"hello"}],"seed":9007199254740995}`)
	want := bytes.Replace(body, []byte("alias"), []byte("demo"), 1)
	for _, l := range []string{"buffered", "duplex", "half", "retry"} {
		e := s.echoed(l, chatPath, body)
		if e.Body != string(want) {
			t.Errorf("%s: upstream got %s", l, e.Body)
		}
		if l == "buffered" && e.Length != int64(len(want)) {
			t.Errorf("%s: content-length %d, want %d", l, e.Length, len(want))
		}
	}
	s.idle(4)
}

// contentLengthGuard: where the gateway keeps the client's content-length, a rewritten body must
// have its own, or the connection to the upstream would be poisoned for the next request.
func contentLengthGuard(t *testing.T, s *site) {
	for i := range 4 {
		body := []byte(`{"model":"alias","messages":[{"role":"user","content":"` + strings.Repeat("x", i) + `"}]}`)
		want := bytes.Replace(body, []byte("alias"), []byte("demo"), 1)
		if e := s.echoed("length", chatPath, body); e.Body != string(want) || e.Length != int64(len(want)) {
			t.Errorf("upstream got %d bytes, content-length %d, want %d", e.Bytes, e.Length, len(want))
		}
		if e := s.echoed("length", chatPath, chatBody); e.Body != string(chatBody) || e.Length != int64(len(chatBody)) {
			t.Errorf("next request: %d bytes, content-length %d", e.Bytes, e.Length)
		}
	}
	s.idle(8)
}

// decisionDeadline: in full duplex the gateway would wait for ever.
func decisionDeadline(t *testing.T, s *site) {
	resp, b := s.do("hung", http.MethodPost, chatPath, chatBody)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get(extproc.ReasonHeader) != extproc.ReasonDeadline {
		t.Errorf("status %d, headers %v, body %s", resp.StatusCode, resp.Header, b)
	}
	for _, u := range s.ups {
		if n := u.requests.Load(); n != 0 {
			t.Errorf("an upstream got %d requests", n)
		}
	}
	close(s.hang) // what is decided now is for nobody; most often it is noticed before
	time.Sleep(50 * time.Millisecond)
	for _, o := range s.seen.take() {
		if o.Cause != fleet.Internal {
			t.Errorf("observed %v", o.Cause)
		}
	}
	s.idle(0)
}

func clientCancels(t *testing.T, s *site) {
	body := []byte(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.ports["duplex"]+chatPath, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("content-type", "application/json")
	req.Header.Set("x-slow", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewScanner(resp.Body)
	for n := 0; n < 3 && events.Scan(); {
		if strings.HasPrefix(events.Text(), "data:") {
			n++
		}
	}
	cancel()
	select {
	case <-s.ups[0].gone:
	case <-time.After(20 * time.Second):
		t.Error("the upstream was not told")
	}
	if o := s.idle(1)[0]; o.Cause != fleet.ClientGone || o.OutputTokens != 3 || o.TTFT == 0 {
		t.Errorf("observed %+v", o)
	}
}

func streamPassesThrough(t *testing.T, s *site) {
	body := []byte(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	for _, l := range []string{"duplex", "streamed"} {
		resp, b := s.do(l, http.MethodPost, chatPath, body)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("content-type") != "text/event-stream" {
			t.Errorf("%s: status %d, headers %v", l, resp.StatusCode, resp.Header)
		}
		var want strings.Builder
		for i := range 100 {
			fmt.Fprintf(&want, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"t%d \"}}]}\n\n", i)
		}
		want.WriteString("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":100}}\n\ndata: [DONE]\n\n")
		if string(b) != want.String() {
			t.Errorf("%s: %d bytes, want %d", l, len(b), want.Len())
		}
		o := s.idle(1)[0]
		if l == "duplex" && (o.Cause != fleet.Complete || o.PromptTokens != 11 || o.OutputTokens != 100 || !o.ExactOutput || o.TTFT <= 0 || o.ITL <= 0) {
			t.Errorf("%s: observed %+v", l, o)
		}
	}
}

// failOpenMatrix: what a gateway that may go on without the service does when it is gone.
func failOpenMatrix(t *testing.T, s *site) {
	for _, c := range []struct {
		listener  string
		post, get int
	}{
		{"open-refused", 503, 200}, // the body was already streamed; headers alone can go on
		{"open-checked", 200, 200},
		{"open-empty", 200, 200},
		{"open-buffered", 200, 200},
		{"closed-refused", 503, 503},
	} {
		post, _ := s.do(c.listener, http.MethodPost, chatPath, chatBody)
		get, _ := s.do(c.listener, http.MethodGet, "/v1/models", nil)
		if post.StatusCode != c.post || get.StatusCode != c.get {
			t.Errorf("%s: POST %d, GET %d; want %d, %d", c.listener, post.StatusCode, get.StatusCode, c.post, c.get)
		}
	}
}

// fallbackRetry: the gateway walks our list when an endpoint fails, with bodies of any size, and
// tells us where it ended.
func fallbackRetry(t *testing.T, s *site) {
	for _, mode := range []string{"503", "reset", "connect"} {
		for _, body := range [][]byte{chatBody, large(5 << 20)} {
			s.order(0, 1, 2)
			s.ups[0].fail("")
			if mode == "connect" {
				s.order(-1, 1, 2)
			} else {
				s.ups[0].fail(mode)
			}
			e := s.echoed("retry", chatPath, body)
			if e.Upstream != s.ups[1].addr || e.SHA != sum(body) {
				t.Errorf("%s, %d bytes: %d bytes at %s", mode, len(body), e.Bytes, e.Upstream)
			}
			if o := s.idle(1)[0]; o.Endpoint != "u2" || o.Picked == "u2" || o.Cause != fleet.Complete {
				t.Errorf("%s: served by %s, picked %s, %v", mode, o.Endpoint, o.Picked, o.Cause)
			}
		}
	}
	// without retries the failure is the client's, and the record's
	s.order(0, 1, 2)
	s.ups[0].fail("503")
	resp, b := s.do("duplex", http.MethodPost, chatPath, chatBody)
	if resp.StatusCode != http.StatusServiceUnavailable || string(b) != "no healthy upstream\n" {
		t.Errorf("status %d, body %q", resp.StatusCode, b)
	}
	if o := s.idle(1)[0]; o.Endpoint != "u1" || o.Cause != fleet.UpstreamError || o.Status != 503 {
		t.Errorf("observed %+v", o)
	}
}

// spoofedDestination: what a client says of the destination reaches nobody, even where the gateway
// does not strip it before it asks us.
func spoofedDestination(t *testing.T, s *site) {
	s.server.SetAnswer(extproc.Answer{Endpoints: 1})
	for _, l := range []string{"duplex", "buffered", "streamed", "none"} {
		for _, path := range []string{"/by-header" + chatPath, "/by-metadata" + chatPath, chatPath} {
			e := s.echoed(l, path, chatBody,
				"x-gateway-destination-endpoint", s.ups[2].addr, "X-Gateway-Destination-Endpoint", s.ups[1].addr+","+s.ups[2].addr,
				"x-gateway-destination-endpoint-subset", s.ups[2].addr, "x-prefiller-host-port", s.ups[2].addr, "x-gateway-model-name-rewrite", "other", "x-harmless", "stays")
			if e.Upstream != s.ups[0].addr {
				t.Errorf("%s %s: went to %s", l, path, e.Upstream)
			}
			if got := e.Headers.Values("x-gateway-destination-endpoint"); len(got) != 1 || got[0] != s.ups[0].addr {
				t.Errorf("%s %s: upstream sees %q", l, path, got)
			}
			for _, name := range []string{"x-gateway-destination-endpoint-subset", "x-prefiller-host-port", "x-gateway-model-name-rewrite"} {
				if got := e.Headers.Values(name); len(got) != 0 {
					t.Errorf("%s %s: upstream sees %s: %q", l, path, name, got)
				}
			}
			if e.Headers.Get("x-harmless") != "stays" {
				t.Errorf("%s %s: a harmless header is gone", l, path)
			}
			s.idle(1)
		}
	}
}

// destinationMethods are the ways in which the reference configuration finds the endpoint.
func destinationMethods(t *testing.T, s *site) {
	s.server.SetAnswer(extproc.Answer{Endpoints: 1})
	for i := range s.ups {
		s.order(i)
		for _, path := range []string{"/by-header" + chatPath, "/by-metadata" + chatPath, chatPath} {
			if e := s.echoed("duplex", path, chatBody); e.Upstream != s.ups[i].addr || e.Path != chatPath {
				t.Errorf("%s: %s at %s, want %s", path, e.Path, e.Upstream, s.ups[i].addr)
			}
			if o := s.idle(1)[0]; o.Endpoint != "u"+strconv.Itoa(i+1) {
				t.Errorf("%s: served by %s", path, o.Endpoint)
			}
		}
	}
	// a list is for override_host alone
	s.server.SetAnswer(extproc.Answer{Endpoints: 2})
	s.order(1, 0)
	if e := s.echoed("duplex", chatPath, chatBody); e.Upstream != s.ups[1].addr {
		t.Errorf("list: went to %s", e.Upstream)
	}
	if resp, _ := s.do("duplex", http.MethodPost, "/by-header"+chatPath, chatBody); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("list by ORIGINAL_DST: status %d", resp.StatusCode)
	}
	for _, o := range s.idle(2) {
		if o.Status == http.StatusServiceUnavailable && o.Cause != fleet.UpstreamError {
			t.Errorf("observed %+v", o)
		}
	}
}

// refusals arrive as we wrote them, and before anything reached an upstream.
func refusals(t *testing.T, s *site) {
	for _, l := range []string{"duplex", "buffered"} {
		resp, b := s.do(l, http.MethodPost, chatPath, []byte(`{"messages":[]}`))
		var e struct {
			Error struct {
				Message string `json:"message"`
				Type    string `json:"type"`
			} `json:"error"`
		}
		if err := json.Unmarshal(b, &e); err != nil || resp.StatusCode != http.StatusBadRequest || e.Error.Message == "" || e.Error.Type != "invalid_request_error" ||
			resp.Header.Get("content-type") != "application/json" || resp.Header.Get(extproc.ReasonHeader) != extproc.ReasonBadRequest {
			t.Errorf("%s: status %d, headers %v, body %s", l, resp.StatusCode, resp.Header, b)
		}
		for _, u := range s.ups {
			if n := u.requests.Load(); n != 0 {
				t.Errorf("%s: an upstream got %d requests", l, n)
			}
		}
	}
}
