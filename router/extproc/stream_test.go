package extproc

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// wireStream is the gateway's end of a stream. Replies are decoded only when the stream is over, as
// a transport that writes late would, so that memory given back too early shows.
type wireStream struct {
	grpc.ServerStream
	ctx   context.Context
	codec codec
	pool  *poison
	msgs  []message
	end   error // what receiving says when there are no more messages
	start time.Time

	mu   sync.Mutex
	out  []mem.BufferSlice
	at   []time.Duration
	gone bool // sending fails
}

// message is one message from the gateway, at a time since the stream began.
type message struct {
	at  time.Duration
	msg *pb.ProcessingRequest
	raw []byte // in place of msg
}

var errReset = status.Error(codes.Canceled, "context canceled")

func (w *wireStream) Context() context.Context { return w.ctx }

func (w *wireStream) RecvMsg(m any) error {
	if len(w.msgs) == 0 {
		return w.end
	}
	next := w.msgs[0]
	w.msgs = w.msgs[1:]
	if d := next.at - time.Since(w.start); next.at > 0 && d > 0 {
		time.Sleep(d)
	}
	b := next.raw
	switch {
	case b != nil:
	case next.msg == nil: // only time passes
		return w.RecvMsg(m)
	default:
		var err error
		if b, err = proto.Marshal(next.msg); err != nil {
			return err
		}
	}
	// cut as HTTP/2 frames would
	var data mem.BufferSlice
	for len(b) > 0 {
		n := min(len(b), 16<<10)
		buf := w.pool.Get(n)
		copy(*buf, b[:n])
		data = append(data, mem.NewBuffer(buf, w.pool))
		b = b[n:]
	}
	defer data.Free()
	return w.codec.Unmarshal(data, m)
}

func (w *wireStream) SendMsg(m any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := w.codec.Marshal(m)
	if err != nil {
		return err
	}
	if w.gone {
		data.Free()
		return io.EOF
	}
	w.out = append(w.out, data)
	w.at = append(w.at, time.Since(w.start))
	return nil
}

// transcript is what a stream came to.
type transcript struct {
	replies []*pb.ProcessingResponse
	at      []time.Duration
	err     error
}

// run plays messages to the service's handler, then ends the stream as told.
func (l *lab) run(end error, msgs ...message) transcript {
	l.t.Helper()
	return l.play(context.Background(), end, msgs...)
}

func (l *lab) play(ctx context.Context, end error, msgs ...message) transcript {
	l.t.Helper()
	w := &wireStream{ctx: ctx, codec: newCodec(l.pool), pool: l.pool, msgs: msgs, end: end, start: time.Now()}
	err := l.server.process(w)
	return w.transcript(l.t, err)
}

func (w *wireStream) transcript(t tester, err error) transcript {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	tr := transcript{err: err, at: w.at}
	for _, data := range w.out {
		var r pb.ProcessingResponse
		if err := proto.Unmarshal(data.Materialize(), &r); err != nil {
			t.Fatalf("reply %d cannot be read: %v", len(tr.replies), err)
		}
		data.Free()
		tr.replies = append(tr.replies, &r)
	}
	return tr
}

// kinds names the replies in order.
func (tr transcript) kinds() string {
	var out []string
	for _, r := range tr.replies {
		switch p := r.Response.(type) {
		case *pb.ProcessingResponse_RequestHeaders:
			out = append(out, "headers")
		case *pb.ProcessingResponse_RequestBody:
			out = append(out, "body"+ending(p.RequestBody))
		case *pb.ProcessingResponse_RequestTrailers:
			out = append(out, "trailers")
		case *pb.ProcessingResponse_ResponseHeaders:
			out = append(out, "HEADERS")
		case *pb.ProcessingResponse_ResponseBody:
			out = append(out, "BODY"+ending(p.ResponseBody))
		case *pb.ProcessingResponse_ResponseTrailers:
			out = append(out, "TRAILERS")
		case *pb.ProcessingResponse_ImmediateResponse:
			out = append(out, fmt.Sprint("immediate ", p.ImmediateResponse.GetStatus().GetCode().Number()))
		default:
			out = append(out, fmt.Sprintf("%T", p))
		}
	}
	return strings.Join(out, " ")
}

// ending marks pieces of a duplex body, and those that end it.
func ending(r *pb.BodyResponse) string {
	s := r.GetResponse().GetBodyMutation().GetStreamedResponse()
	switch {
	case s == nil:
		return ""
	case s.EndOfStream:
		return "+$"
	}
	return "+"
}

// request returns the body sent to the upstream in full duplex, and the response's to the client.
func (tr transcript) bodies() (request, response []byte) {
	for _, r := range tr.replies {
		request = append(request, r.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()...)
		response = append(response, r.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()...)
	}
	return request, response
}

// mutation returns the header mutation and metadata of the first reply to request headers or body
// that has some.
func (tr transcript) mutation() (set map[string]string, remove []string, metadata string) {
	set = map[string]string{}
	for _, r := range tr.replies {
		for _, c := range []*pb.CommonResponse{r.GetRequestHeaders().GetResponse(), r.GetRequestBody().GetResponse()} {
			for _, h := range c.GetHeaderMutation().GetSetHeaders() {
				if h.AppendAction != core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
					set["!"+h.Header.Key] = h.AppendAction.String()
				}
				set[h.Header.Key] = string(h.Header.RawValue)
			}
			remove = append(remove, c.GetHeaderMutation().GetRemoveHeaders()...)
		}
		if s := r.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"].GetStringValue(); s != "" {
			metadata = s
		}
	}
	return set, remove, metadata
}

func (tr transcript) immediate() *pb.ImmediateResponse {
	for _, r := range tr.replies {
		if im := r.GetImmediateResponse(); im != nil {
			return im
		}
	}
	return nil
}

// poison is a buffer pool whose buffers lose their content when they are given back.
type poison struct {
	lent counter
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add(d int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += d
}

func (c *counter) Load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (p *poison) Get(n int) *[]byte {
	p.lent.add(1)
	b := make([]byte, n, max(n, 2<<10)) // gRPC does not give back smaller ones
	return &b
}

func (p *poison) Put(b *[]byte) {
	p.lent.add(-1)
	full := (*b)[:cap(*b)]
	for i := range full {
		full[i] = 0xdd
	}
}
