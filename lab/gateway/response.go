package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// respond calls the endpoint and shows its answer to the picker, chunk by chunk.
func (x *exchange) respond(targets []string) {
	resp, served := x.call(targets)
	x.touch()
	defer resp.Body.Close()
	removeHopByHop(resp.Header)
	resp.Header.Del("Content-Length")
	x.mu.Lock()
	x.resp = resp
	if x.left {
		x.mu.Unlock()
		x.taken <- resp
		<-x.ctx.Done() // the handler's side reads the body
		return
	}
	x.offered = true
	x.mu.Unlock()
	m := &extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{
			Headers: responseMap(resp), EndOfStream: bodiless(x.r, resp),
		}},
		MetadataContext: x.hint,
	}
	if served != "" {
		m.Attributes = map[string]*structpb.Struct{attributesKey: object("upstream.address", served)}
		if x.cfg.Destination == OverrideHost {
			m.MetadataContext = withServed(x.hint, served)
		}
	}
	if x.send(m) != nil || bodiless(x.r, resp) {
		return
	}
	buf := x.buffers.Get().(*[chunkSize]byte)
	defer x.buffers.Put(buf)
	for {
		n, err := resp.Body.Read(buf[:])
		x.touch()
		if n > 0 && x.send(responseBody(buf[:n], false)) != nil {
			return
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			x.cancel(errReset)
		case len(resp.Trailer) > 0:
			_ = x.send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{
				ResponseTrailers: &extproc.HttpTrailers{Trailers: &corev3.HeaderMap{Headers: appendFields(nil, resp.Trailer)}},
			}})
		default:
			_ = x.send(responseBody(nil, true))
		}
		return
	}
}

func responseBody(p []byte, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
		ResponseBody: &extproc.HttpBody{Body: p, EndOfStream: end},
	}}
}

// bodiless reports whether an answer ends with its headers.
func bodiless(r *http.Request, resp *http.Response) bool {
	return r.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// call tries the endpoints in order and returns the first answer that is none of a broken endpoint,
// or the last one. Without any answer it makes the proxy's own, which the picker sees like any
// other. served is empty where no endpoint answered.
func (x *exchange) call(targets []string) (resp *http.Response, served string) {
	if len(targets) == 0 {
		return localReply("no healthy upstream"), ""
	}
	if len(targets) > maxAttempts {
		targets = targets[:maxAttempts]
	}
	for i, target := range targets {
		last := i == len(targets)-1
		r, err := x.attempt(target)
		if !last && x.body.kept() && x.ctx.Err() == nil {
			if err != nil {
				continue
			}
			if r.StatusCode == http.StatusServiceUnavailable {
				_ = r.Body.Close()
				continue
			}
		}
		if err == nil {
			return r, target
		}
		return localReply("upstream connect error or disconnect/reset before headers: " + err.Error()), ""
	}
	return localReply("no healthy upstream"), ""
}

// attempt sends the request to one endpoint. Its body is always chunked: the length may change.
func (x *exchange) attempt(target string) (*http.Response, error) {
	path := x.path
	if path == "" {
		path = x.r.URL.RequestURI()
	}
	req, err := http.NewRequestWithContext(x.ctx, x.r.Method, "http://"+target+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header, req.Host = x.header.Clone(), x.r.Host
	if hasBody(x.r) {
		req.Body, req.ContentLength = x.body.open(), -1
	}
	req.Header.Del("Content-Length")
	if req.Header.Get("User-Agent") == "" {
		req.Header["User-Agent"] = nil // else the transport names itself
	}
	return x.transport.RoundTrip(req)
}

func localReply(text string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable,
		Header:     http.Header{"Content-Type": {"text/plain"}},
		Body:       io.NopCloser(strings.NewReader(text)),
	}
}

// responseHeaders begins the client's answer.
func (x *exchange) responseHeaders(m *extproc.HeaderMutation) (done bool, err error) {
	x.mu.Lock()
	offered, resp := x.offered, x.resp
	x.mu.Unlock()
	if !offered || x.begun {
		return false, errSpurious
	}
	h := resp.Header.Clone() // the other goroutine still reads the original
	mutate(h, m)
	x.begin(resp.StatusCode, h)
	return bodiless(x.r, resp), nil
}

func (x *exchange) begin(status int, h http.Header) {
	x.begun = true
	out := x.w.Header()
	out["Content-Type"], out["Date"] = nil, nil // sent only as the endpoint sent them
	for k, v := range h {
		out[k] = v
	}
	if x.uploads() {
		out.Set("Connection", "close") // a read that will be cut short leaves the connection unusable
	}
	x.w.WriteHeader(status)
	_ = x.control.Flush()
}

// write passes a chunk on at once.
func (x *exchange) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := x.w.Write(p); err != nil {
		return err
	}
	return x.control.Flush()
}

func (x *exchange) trailers(m *extproc.HeaderMutation) {
	x.mu.Lock()
	t := x.resp.Trailer.Clone()
	x.mu.Unlock()
	mutate(t, m)
	for k, v := range t {
		x.w.Header()[http.TrailerPrefix+k] = v
	}
}

// immediate ends the request with the picker's own answer, or with a reset if another has begun.
func (x *exchange) immediate(v *extproc.ImmediateResponse) (done bool, err error) {
	if x.begun {
		return false, errSpurious
	}
	x.cancel(nil)
	h := http.Header{"Content-Type": {"text/plain"}}
	mutate(h, v.GetHeaders())
	status := int(v.GetStatus().GetCode())
	if status < 200 || status > 599 {
		status = http.StatusInternalServerError
	}
	x.begin(status, h)
	return true, x.write(v.GetBody())
}

// alone finishes a request whose picker closed its stream cleanly: allowed once the request is
// answered and as long as none of the response is in the picker's hands.
func (x *exchange) alone() (int, error) {
	x.mu.Lock()
	x.left = true
	offered := x.offered
	x.mu.Unlock()
	if !x.decided || !x.bodyDone || offered {
		return http.StatusInternalServerError, errLeft
	}
	var resp *http.Response
	select {
	case resp = <-x.taken:
	case <-x.ctx.Done():
		return http.StatusGatewayTimeout, context.Cause(x.ctx)
	}
	x.begin(resp.StatusCode, resp.Header)
	if bodiless(x.r, resp) {
		return 0, nil
	}
	buf := x.buffers.Get().(*[chunkSize]byte)
	defer x.buffers.Put(buf)
	for {
		n, err := resp.Body.Read(buf[:])
		x.touch()
		if err := x.write(buf[:n]); err != nil {
			return http.StatusBadGateway, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return http.StatusBadGateway, err
		}
	}
}
