package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/presage-router/presage/internal/loopback"
)

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func header(m *corev3.HeaderMap, key string) string {
	for _, h := range m.GetHeaders() {
		if h.Key == key {
			return string(h.RawValue)
		}
	}
	return ""
}

// A small POST: the messages, and what travels with them.
func TestSmallPost(t *testing.T) {
	var got struct {
		body, length, spoof string
		chunked             bool
	}
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got.body, got.length, got.spoof = string(b), r.Header.Get("Content-Length"), r.Header.Get(destinationHeader)
		got.chunked = slices.Equal(r.TransferEncoding, []string{"chunked"})
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":1}`)
	})
	p := &picker{target: addr}
	l := start(t, p, Config{SubsetHeader: "X-Subset"})
	req := request(t, "POST", l.url+"/v1/completions?a=b", "hello")
	req.Header.Set("X-Subset", "10.0.0.1:80")
	req.Header.Set(destinationHeader, "10.9.9.9:1")
	resp, body := l.do(t, req)
	if resp.StatusCode != http.StatusOK || body != `{"ok":1}` || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("answer %d %q %v", resp.StatusCode, body, resp.Header)
	}
	if got.body != "hello" || got.length != "" || !got.chunked || got.spoof != addr {
		t.Errorf("the endpoint saw %+v", got)
	}
	names, all := p.messages()
	if d := cmp.Diff([]string{"RH", "RB", "RB.", "PH", "PB", "PB."}, names); d != "" {
		t.Fatal(d)
	}
	for i, m := range all {
		if (m.ProtocolConfig != nil) != (i == 0) {
			t.Errorf("message %d: protocol_config %v", i, m.ProtocolConfig)
		}
		hint := m.GetMetadataContext().GetFilterMetadata()[subsetNamespace].GetFields()[subsetKey].GetStringValue()
		if hint != "10.0.0.1:80" {
			t.Errorf("message %d: subset hint %q", i, hint)
		}
	}
	h := all[0].GetRequestHeaders().GetHeaders()
	for key, want := range map[string]string{":path": "/v1/completions?a=b", ":method": "POST", ":scheme": "http", "content-length": "5", destinationKey: ""} {
		if v := header(h, key); v != want {
			t.Errorf("request header %s: %q, want %q", key, v, want)
		}
	}
	if header(h, "x-request-id") == "" {
		t.Error("no request id was added")
	}
	ph := all[3]
	if v := header(ph.GetResponseHeaders().GetHeaders(), ":status"); v != "200" {
		t.Errorf(":status %q", v)
	}
	served := ph.GetMetadataContext().GetFilterMetadata()[lbNamespace].GetFields()[servedKey].GetStringValue()
	if upstream := ph.GetAttributes()[attributesKey].GetFields()["upstream.address"].GetStringValue(); served != addr || upstream != addr {
		t.Errorf("served %q, upstream.address %q, want %q", served, upstream, addr)
	}
	if err := <-p.ended; status.Code(err) != codes.Canceled {
		t.Errorf("the stream ended with %v, want a reset", err)
	}
}

func TestLargeBodyIsCutAndExact(t *testing.T) {
	want := make([]byte, 5<<20+7)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(want)
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	p := &picker{target: addr}
	l := start(t, p, Config{})
	_, body := l.do(t, request(t, "POST", l.url, string(want)))
	if !bytes.Equal([]byte(body), want) {
		t.Errorf("%d bytes came back, not the %d sent", len(body), len(want))
	}
	_, all := p.messages()
	for i, m := range all {
		if n := max(len(m.GetRequestBody().GetBody()), len(m.GetResponseBody().GetBody())); n > chunkSize {
			t.Errorf("message %d has %d bytes", i, n)
		}
	}
}

// Each event reaches the client before the endpoint sends the next.
func TestStreamIsFlushedPerChunk(t *testing.T) {
	next := make(chan struct{})
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	l := start(t, &picker{target: addr}, Config{})
	resp, err := l.client.Do(request(t, "POST", l.url, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 64)
	for i := range 5 {
		n, err := io.ReadAtLeast(resp.Body, buf, 9)
		if want := fmt.Sprintf("data: %d\n\n", i); string(buf[:n]) != want || err != nil {
			t.Fatalf("event %d: %q, %v", i, buf[:n], err)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("after the events: %q, %v", rest, err)
	}
}

func TestAnswersWithoutBody(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   []string
	}{
		{"GET", 200, []string{"RH.", "PH", "PB."}},
		{"HEAD", 200, []string{"RH.", "PH."}},
		{"DELETE", 204, []string{"RH.", "PH."}},
	} {
		t.Run(c.method, func(t *testing.T) {
			addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) })
			p := &picker{target: addr}
			l := start(t, p, Config{})
			resp, body := l.do(t, request(t, c.method, l.url+"/v1/models", ""))
			if resp.StatusCode != c.status || body != "" {
				t.Errorf("answer %d %q", resp.StatusCode, body)
			}
			<-p.ended
			if names, _ := p.messages(); !slices.Equal(names, c.want) {
				t.Errorf("messages %v, want %v", names, c.want)
			}
		})
	}
}

func TestTrailersBothWays(t *testing.T) {
	var got http.Header
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(w, r.Body)
		got = r.Trailer.Clone()
		w.Header().Set("X-Sum", "42")
	})
	p := &picker{target: addr}
	l := start(t, p, Config{})
	req := request(t, "POST", l.url, "with trailers")
	req.ContentLength, req.Trailer = -1, http.Header{"X-End": {"1"}}
	resp, body := l.do(t, req)
	if body != "with trailers" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("answer %q, trailers %v", body, resp.Trailer)
	}
	if names, _ := p.messages(); !slices.Contains(names, "RT") || slices.Contains(names, "RB.") || !slices.Contains(names, "PT") || slices.Contains(names, "PB.") {
		t.Errorf("messages %v: trailers end a direction, not a body message", names)
	}
	if len(got) > 0 {
		t.Logf("trailers at the endpoint: %v", got)
	}
}

func TestImmediateResponse(t *testing.T) {
	p := &picker{reply: func(_ *picker, s extproc.ExternalProcessor_ProcessServer, m *extproc.ProcessingRequest) error {
		if !m.GetRequestBody().GetEndOfStream() {
			return nil
		}
		return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extproc.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
			Headers: &extproc.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{set("retry-after", "1"), set("content-type", "application/json")}},
			Body:    []byte(`{"error":{}}`),
		}}})
	}}
	l := start(t, p, Config{})
	resp, body := l.do(t, request(t, "POST", l.url, "x"))
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Content-Type") != "application/json" || body != `{"error":{}}` {
		t.Errorf("answer %d %v %q", resp.StatusCode, resp.Header, body)
	}
}

// What the client sees when the picker is gone, fails or breaks the protocol before the answer.
func TestPickerFaults(t *testing.T) {
	type server = extproc.ExternalProcessor_ProcessServer
	fail := func(*picker, server, *extproc.ProcessingRequest) error { return status.Error(codes.Internal, "boom") }
	leave := func(*picker, server, *extproc.ProcessingRequest) error { return errClose }
	twice := func(p *picker, s server, m *extproc.ProcessingRequest) error {
		_ = s.Send(p.pass(m))
		return s.Send(p.pass(m))
	}
	bodyFirst := func(_ *picker, s server, m *extproc.ProcessingRequest) error {
		return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: streamed(nil, true)}})
	}
	common := func(p *picker, s server, m *extproc.ProcessingRequest) error {
		if m.GetRequestBody() == nil {
			return s.Send(p.pass(m))
		}
		return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: &extproc.BodyResponse{}}})
	}
	answerEarly := func(p *picker, s server, m *extproc.ProcessingRequest) error {
		return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}}})
	}
	for name, c := range map[string]struct {
		p    *picker
		want int
	}{
		"not there":                    {nil, 503},
		"gRPC error":                   {&picker{reply: fail}, 503},
		"closes without an answer":     {&picker{reply: leave}, 500},
		"answers the headers twice":    {&picker{reply: twice}, 500},
		"body before headers":          {&picker{reply: bodyFirst}, 500},
		"common response to a body":    {&picker{reply: common}, 500},
		"response before the endpoint": {&picker{reply: answerEarly}, 500},
		"no destination":               {&picker{}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			hang := backend(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a disconnect is noticed only past the body
				<-r.Context().Done()
			})
			if c.p != nil && c.p.reply != nil {
				c.p.target = hang
			}
			l := start(t, c.p, Config{})
			if resp, _ := l.do(t, request(t, "POST", l.url, "x")); resp.StatusCode != c.want {
				t.Errorf("status %d, want %d", resp.StatusCode, c.want)
			}
		})
	}
}

// A picker may leave once the request is answered: the response passes untouched.
func TestPickerLeavesAfterRequest(t *testing.T) {
	release := make(chan struct{})
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		fmt.Fprint(w, "untouched")
	})
	p := &picker{target: addr}
	p.reply = func(p *picker, s extproc.ExternalProcessor_ProcessServer, m *extproc.ProcessingRequest) error {
		if err := s.Send(p.pass(m)); err != nil || !m.GetRequestBody().GetEndOfStream() {
			return err
		}
		return errClose
	}
	l := start(t, p, Config{})
	go func() { <-p.ended; time.Sleep(50 * time.Millisecond); close(release) }() // let the close arrive first
	if resp, body := l.do(t, request(t, "POST", l.url, "x")); resp.StatusCode != http.StatusOK || body != "untouched" {
		t.Errorf("answer %d %q", resp.StatusCode, body)
	}
}

func TestDestinationLists(t *testing.T) {
	dead, err := loopback.Free(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	refused := dead[0]
	busy := backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	good := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	long := strings.Repeat("x", 4096)
	for name, c := range map[string]struct {
		target string
		cfg    Config
		body   string
		want   int
	}{
		"refused, then good":        {refused + "," + good, Config{}, "b", 200},
		"busy, then good":           {busy + ", " + good, Config{}, "b", 200},
		"garbage is skipped":        {"garbage," + good, Config{}, "b", 200},
		"list used up":              {busy + "," + busy, Config{}, "b", 503},
		"one refused":               {refused, Config{}, "b", 503},
		"body longer than kept":     {busy + "," + good, Config{RetryBuffer: 100}, long, 503},
		"original destination":      {good, Config{Destination: OriginalDst}, "b", 200},
		"original destination list": {good + "," + good, Config{Destination: OriginalDst}, "b", 503},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, &picker{target: c.target}, c.cfg)
			resp, body := l.do(t, request(t, "POST", l.url, c.body))
			if resp.StatusCode != c.want || (c.want == 200 && body != c.body) {
				t.Errorf("answer %d %.40q, want %d", resp.StatusCode, body, c.want)
			}
		})
	}
}

// A connection that has carried a body to its end can be used again.
func TestConnectionIsReused(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	l := start(t, &picker{target: addr}, Config{})
	reused := 0
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}}
	for range 20 {
		req := request(t, "POST", l.url, "again")
		resp, body := l.do(t, req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		if resp.StatusCode != http.StatusOK || body != "again" {
			t.Fatalf("answer %d %q", resp.StatusCode, body)
		}
		time.Sleep(time.Millisecond) // the server now waits for the next request
	}
	if reused == 0 {
		t.Error("every request had a connection of its own")
	}
}

// A client that leaves, at whatever point, resets both the picker's stream and the endpoint's request.
func TestB31ClientLeaves(t *testing.T) {
	for name, leave := range map[string]string{
		"while it sends its body":   "body",
		"before the picker answers": "picked",
		"before the endpoint does":  "asked",
		"within the answer":         "answered",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reach := func(point string) {
				if point == leave {
					cancel()
				}
			}
			called, gone := make(chan struct{}, 1), make(chan struct{}, 1)
			p := &picker{target: backend(t, func(w http.ResponseWriter, r *http.Request) {
				called <- struct{}{}
				_, _ = io.Copy(io.Discard, r.Body)
				if leave == "answered" {
					fmt.Fprint(w, "data: 1\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				reach("asked")
				<-r.Context().Done()
				gone <- struct{}{}
			})}
			p.reply = func(p *picker, s extproc.ExternalProcessor_ProcessServer, m *extproc.ProcessingRequest) error {
				if m.GetRequestBody().GetEndOfStream() {
					if reach("picked"); leave == "picked" {
						return nil
					}
				}
				return s.Send(p.pass(m))
			}
			l := start(t, p, Config{})
			body, feed := io.Pipe()
			// The client's transport may wait for a body that nobody goes on writing.
			defer context.AfterFunc(ctx, func() { feed.CloseWithError(context.Canceled) })()
			go func() {
				_, _ = io.WriteString(feed, "half")
				if reach("body"); leave != "body" {
					feed.Close()
				}
			}()
			req := request(t, "POST", l.url, "").WithContext(ctx)
			req.Body, req.ContentLength = body, -1
			resp, err := l.client.Do(req)
			if err == nil {
				_, err = io.ReadFull(resp.Body, make([]byte, 9))
				reach("answered")
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if leave != "answered" && err == nil {
				t.Error("the client got an answer")
			}
			if err := <-p.ended; status.Code(err) != codes.Canceled {
				t.Errorf("the picker's stream ended with %v", err)
			}
			feed.Close()
			select {
			case <-called:
				<-gone
			default:
				if leave == "asked" || leave == "answered" {
					t.Error("the endpoint was never asked")
				}
			}
		})
	}
}

// What a client says about the destination is never obeyed.
func TestB48ClientCannotChooseTheEndpoint(t *testing.T) {
	wrong := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, d := range []Destination{OverrideHost, OriginalDst} {
		p := &picker{reply: func(_ *picker, s extproc.ExternalProcessor_ProcessServer, m *extproc.ProcessingRequest) error {
			return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{}}})
		}}
		l := start(t, p, Config{Destination: d})
		req := request(t, "GET", l.url, "")
		req.Header.Set(destinationHeader, wrong)
		req.Header.Set("Connection", "X-Other, "+destinationHeader)
		resp, err := l.client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusTeapot {
				t.Error("the client's endpoint was asked")
			}
		}
	}
}

// An endpoint that breaks off resets the client, and never looks like a complete answer.
func TestUpstreamBreaksOff(t *testing.T) {
	begun := make(chan struct{})
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-begun
		panic(http.ErrAbortHandler)
	})
	p := &picker{target: addr}
	l := start(t, p, Config{})
	resp, err := l.client.Do(request(t, "POST", l.url, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	close(begun)
	if _, err = io.ReadAll(resp.Body); err == nil {
		t.Error("the answer ended cleanly")
	}
	<-p.ended
	if names, _ := p.messages(); slices.Contains(names, "PB.") {
		t.Errorf("messages %v: the picker was told of an end", names)
	}
}

func TestIdleTimeout(t *testing.T) {
	p := &picker{reply: func(*picker, extproc.ExternalProcessor_ProcessServer, *extproc.ProcessingRequest) error { return nil }}
	l := start(t, p, Config{IdleTimeout: 20 * time.Millisecond})
	if resp, _ := l.do(t, request(t, "POST", l.url, "x")); resp.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("status %d, want 504", resp.StatusCode)
	}
	if err := <-p.ended; status.Code(err) != codes.Canceled {
		t.Errorf("the stream ended with %v", err)
	}
}
