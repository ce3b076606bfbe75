package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

var (
	errIdle     = errors.New("idle timeout")
	errSpurious = errors.New("spurious message of the endpoint picker")
	errReset    = errors.New("upstream reset")
	errLeft     = errors.New("the endpoint picker closed the stream without an answer")
)

// exchange is one request under way. Three goroutines share it: run (the handler's) receives from
// the picker and writes to the client, request feeds the picker with the request body, respond
// calls the endpoint and feeds the picker with its answer.
type exchange struct {
	*Gateway
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stream  extproc.ExternalProcessor_ProcessClient
	idle    *time.Timer
	hint    *corev3.Metadata // on every message
	header  http.Header      // as the endpoint gets it
	path    string           // as the picker rewrote it; empty: the client's
	body    *spool
	work    sync.WaitGroup

	uploaded chan struct{} // closed when nothing more is read of the client's body

	// Of run alone.
	decided  bool // the request headers are answered
	bodyDone bool // the request body is answered
	begun    bool // the client has its response headers

	mu      sync.Mutex // also makes sends one at a time
	left    bool       // the picker closed its stream, cleanly
	offered bool       // the response was shown to the picker
	resp    *http.Response
	taken   chan *http.Response // the response, when the picker is gone
}

// run is the whole request. A client whose response has begun learns of a failure by a reset.
func (x *exchange) run() {
	uploading := hasBody(x.r)
	if uploading {
		x.work.Go(x.request)
	} else {
		close(x.uploaded)
		x.bodyDone = true
		x.body.end()
	}
	status, cause := x.serve(!uploading)
	x.cancel(nil)
	if x.uploads() {
		x.w.Header().Set("Connection", "close")   // of no effect once the response has begun
		_ = x.control.SetReadDeadline(time.Now()) // ends a pending read of the body; ignored where unsupported
	}
	x.work.Wait()
	x.idle.Stop()
	switch {
	case status == 0:
	case x.begun:
		panic(http.ErrAbortHandler)
	default:
		http.Error(x.w, "ext_proc: "+cause.Error(), status) // Envoy keeps the cause to its access log
	}
}

// uploads reports whether the client's body is still being read.
func (x *exchange) uploads() bool {
	select {
	case <-x.uploaded:
		return false
	default:
		return true
	}
}

// serve returns 0 when the client has its answer, else the status that it should get, and why.
func (x *exchange) serve(end bool) (int, error) {
	if !end {
		// sent by request, which owns the order headers, body
	} else if err := x.sendHeaders(true); err != nil && !errors.Is(err, io.EOF) {
		return http.StatusServiceUnavailable, err
	}
	for {
		m, err := x.stream.Recv()
		x.touch()
		switch {
		case errors.Is(err, io.EOF):
			return x.alone()
		case err != nil && errors.Is(context.Cause(x.ctx), errIdle):
			return http.StatusGatewayTimeout, errIdle
		case err != nil:
			return http.StatusServiceUnavailable, err
		}
		done, err := x.handle(m)
		switch {
		case err != nil:
			return http.StatusInternalServerError, err
		case done:
			return 0, nil
		}
	}
}

// touch puts off the idle timeout.
func (x *exchange) touch() { x.idle.Reset(x.cfg.IdleTimeout) }

// handle acts on one message of the picker and reports whether the client's answer is complete.
func (x *exchange) handle(m *extproc.ProcessingResponse) (done bool, err error) {
	switch v := m.GetResponse().(type) {
	case *extproc.ProcessingResponse_RequestHeaders:
		if x.decided {
			return false, errSpurious
		}
		x.decided = true
		x.path = mutate(x.header, v.RequestHeaders.GetResponse().GetHeaderMutation())
		targets := x.cfg.Destination.destinations(x.header, m.GetDynamicMetadata())
		x.work.Go(func() { x.respond(targets) })
	case *extproc.ProcessingResponse_RequestBody:
		s := v.RequestBody.GetResponse().GetBodyMutation().GetStreamedResponse()
		if s == nil || !x.decided || x.bodyDone {
			return false, errSpurious
		}
		if _, err := x.body.Write(s.GetBody()); err != nil {
			return false, err
		}
		if s.GetEndOfStream() {
			x.endBody()
		}
	case *extproc.ProcessingResponse_RequestTrailers:
		if !x.decided || x.bodyDone {
			return false, errSpurious
		}
		x.endBody()
	case *extproc.ProcessingResponse_ResponseHeaders:
		return x.responseHeaders(v.ResponseHeaders.GetResponse().GetHeaderMutation())
	case *extproc.ProcessingResponse_ResponseBody:
		s := v.ResponseBody.GetResponse().GetBodyMutation().GetStreamedResponse()
		if s == nil || !x.begun {
			return false, errSpurious
		}
		return s.GetEndOfStream(), x.write(s.GetBody())
	case *extproc.ProcessingResponse_ResponseTrailers:
		if !x.begun {
			return false, errSpurious
		}
		x.trailers(v.ResponseTrailers.GetHeaderMutation())
		return true, nil
	case *extproc.ProcessingResponse_ImmediateResponse:
		return x.immediate(v.ImmediateResponse)
	}
	return false, nil // answers of newer pickers that ask nothing of us
}

func (x *exchange) endBody() {
	x.bodyDone = true
	x.body.end()
}

// send passes one message to the picker; the first of a stream carries the protocol configuration.
func (x *exchange) send(m *extproc.ProcessingRequest) error {
	if m.MetadataContext == nil {
		m.MetadataContext = x.hint
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stream.Send(m)
}

func (x *exchange) sendHeaders(end bool) error {
	const duplex = extfilter.ProcessingMode_FULL_DUPLEX_STREAMED
	return x.send(&extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{
			Headers: requestMap(x.r, x.header), EndOfStream: end,
		}},
		ProtocolConfig: &extproc.ProtocolConfiguration{RequestBodyMode: duplex, ResponseBodyMode: duplex},
	})
}

// request sends the headers and the body of the client's request: chunks as they come, then an
// empty one that ends it, or the trailers.
func (x *exchange) request() {
	defer close(x.uploaded)
	if x.sendHeaders(false) != nil {
		return // the receiving side learns why
	}
	buf := x.buffers.Get().(*[chunkSize]byte)
	defer x.buffers.Put(buf)
	for {
		n, err := x.r.Body.Read(buf[:])
		x.touch()
		if n > 0 && x.send(requestBody(buf[:n], false)) != nil {
			return
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			x.cancel(err) // the client is gone
		case len(x.r.Trailer) > 0:
			_ = x.send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestTrailers{
				RequestTrailers: &extproc.HttpTrailers{Trailers: &corev3.HeaderMap{Headers: appendFields(nil, x.r.Trailer)}},
			}})
		default:
			_ = x.send(requestBody(nil, true))
		}
		return
	}
}

func requestBody(p []byte, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
		RequestBody: &extproc.HttpBody{Body: p, EndOfStream: end},
	}}
}
