package extproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// first is the policy of most tests: the first candidate, the others as fallbacks in order.
type first struct {
	before func(q *router.Query) error // may be nil
}

func (first) Name() string { return "first" }

func (p first) Route(q *router.Query, d *router.Decision) error {
	if p.before != nil {
		if err := p.before(q); err != nil {
			return err
		}
	}
	for i, k := range q.Keep {
		switch {
		case k && d.Index < 0:
			d.Index, d.Propensity = i, 1
		case k:
			d.Fallback = append(d.Fallback, i)
		}
	}
	return nil
}

// tester is a test, a fuzz target or a property.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// lab is a service with a fleet of three, and everything it says to others.
type lab struct {
	t      tester
	fleet  *fleet.Fleet
	server *Server
	pool   *poison

	mu    sync.Mutex
	seen  []features.Observation
	stats map[string]int
}

type labOptions struct {
	Options
	policy router.Policy
	fleet  []string // addresses
	config request.Config
	strict bool
}

func newLab(t tester, o labOptions) *lab {
	t.Helper()
	l := &lab{t: t, fleet: new(fleet.Fleet), stats: map[string]int{}, pool: new(poison)}
	if o.fleet == nil {
		o.fleet = []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"}
	}
	var eps []*fleet.Endpoint
	for i, a := range o.fleet {
		eps = append(eps, &fleet.Endpoint{Name: fmt.Sprintf("ep-%d", i+1), Addr: netip.MustParseAddrPort(a), Model: "demo", TP: 1})
	}
	if _, err := l.fleet.Sync(time.Now(), eps); err != nil {
		t.Fatal(err)
	}
	if o.policy == nil {
		o.policy = first{}
	}
	o.Router = router.New(router.Options{Fleet: l.fleet, Policy: o.policy, Observer: l, Strict: o.strict})
	var err error
	if o.Parser, err = request.NewParser(o.config); err != nil {
		t.Fatal(err)
	}
	if o.Stats == nil {
		o.Stats = l
	}
	if l.server, err = New(o.Options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.server.Stop)
	return l
}

func (l *lab) Observe(o *features.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, *o)
}

func (l *lab) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats[fmt.Sprintf(format, args...)]++
}

func (l *lab) StreamOpened()                  { l.note("opened") }
func (l *lab) StreamClosed(code string)       { l.note("closed"); l.note("closed %s", code) }
func (l *lab) Spent(p Phase, d time.Duration) { l.note("spent %s", p) }
func (l *lab) Began(string)                   { l.note("began") }
func (l *lab) Ended(_ string, routed bool, o Outcome) {
	l.note("ended")
	l.note("ended %s", o)
	if routed {
		l.note("ended routed")
	}
}
func (l *lab) Refused(code int, reason string) { l.note("refused %d %s", code, reason) }
func (l *lab) BadUsage()                       { l.note("bad usage") }

func (l *lab) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats[what]
}

func (l *lab) observations() []features.Observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// only returns the one record there must be.
func (l *lab) only() features.Observation {
	l.t.Helper()
	seen := l.observations()
	if len(seen) != 1 {
		l.t.Fatalf("%d observations, want 1: %+v", len(seen), seen)
	}
	return seen[0]
}

// inflight returns the open requests of every endpoint.
func (l *lab) inflight() (total int) {
	var s fleet.Snapshot
	l.fleet.Snapshot(time.Now(), &s)
	for _, e := range s.States {
		if e.Requests < 0 {
			l.t.Errorf("%s: %d requests in flight", e.Name, e.Requests)
		}
		total += int(e.Requests)
	}
	return total
}

// settled checks what must hold whenever no stream is open: nothing is in flight, no body is held,
// and what began has ended.
func (l *lab) settled() {
	l.t.Helper()
	if n := l.inflight(); n != 0 {
		l.t.Errorf("%d requests in flight at the end", n)
	}
	if n := l.server.setting.memory.budget.used.Load(); n != 0 {
		l.t.Errorf("%d bytes of bodies held at the end", n)
	}
	if b, e := l.count("began"), l.count("ended routed"); b != e {
		l.t.Errorf("%d requests began, %d ended", b, e)
	}
	if o, c := l.count("opened"), l.count("closed"); o != c {
		l.t.Errorf("%d streams opened, %d closed", o, c)
	}
	if n := l.pool.lent.Load(); n != 0 {
		l.t.Errorf("%d receive buffers not given back", n)
	}
}

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
	if next.msg == nil { // only time passes
		return w.RecvMsg(m)
	}
	b, err := proto.Marshal(next.msg)
	if err != nil {
		return err
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

// sent is how many replies were sent so far.
func (w *wireStream) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.out)
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

// Messages from the gateway.

type modes struct {
	request, response filter.ProcessingMode_BodySendMode
}

var (
	fds      = modes{filter.ProcessingMode_FULL_DUPLEX_STREAMED, filter.ProcessingMode_FULL_DUPLEX_STREAMED}
	buffered = modes{filter.ProcessingMode_BUFFERED, filter.ProcessingMode_BUFFERED}
	streamed = modes{filter.ProcessingMode_STREAMED, filter.ProcessingMode_STREAMED}
	none     = modes{}
)

func headerMap(kv ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return m
}

// open is the first message of a stream.
func open(m modes, end bool, kv ...string) message { return reqHeaders(end, kv...).configured(m) }

// configured makes a message the first of its stream.
func (m message) configured(by modes) message {
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	out.ProtocolConfig = &pb.ProtocolConfiguration{RequestBodyMode: by.request, ResponseBodyMode: by.response}
	return message{m.at, out}
}

func reqHeaders(end bool, kv ...string) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{Headers: headerMap(kv...), EndOfStream: end}}}}
}

// chat opens a stream with the headers of a chat request.
func chat(m modes, kv ...string) message {
	return open(m, false, append([]string{":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json"}, kv...)...)
}

func reqBody(b []byte, end bool) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: b, EndOfStream: end}}}}
}

func reqTrailers() message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestTrailers{RequestTrailers: &pb.HttpTrailers{Trailers: headerMap("x-sum", "1")}}}}
}

func respHeaders(end bool, status string, kv ...string) message {
	kv = append([]string{":status", status}, kv...)
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headerMap(kv...), EndOfStream: end}}}}
}

func respBody(b string, end bool) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte(b), EndOfStream: end}}}}
}

func respTrailers(kv ...string) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseTrailers{ResponseTrailers: &pb.HttpTrailers{Trailers: headerMap(kv...)}}}}
}

// with adds metadata of one namespace to a message.
func (m message) with(namespace, key string, value any) message {
	s, err := structpb.NewStruct(map[string]any{key: value})
	if err != nil {
		panic(err)
	}
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	if out.MetadataContext == nil {
		out.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
	}
	out.MetadataContext.FilterMetadata[namespace] = s
	return message{m.at, out}
}

// subset adds a hint.
func (m message) subset(value any) message {
	return m.with("envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset", value)
}

// attribute adds an attribute of the filter.
func (m message) attribute(key, value string) message {
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	s, _ := structpb.NewStruct(map[string]any{key: value})
	out.Attributes = map[string]*structpb.Struct{"envoy.filters.http.ext_proc": s}
	return message{m.at, out}
}

// after moves a message to a time since the stream began.
func (m message) after(d time.Duration) message { return message{d, m.msg} }

// chatBody is a small chat request.
var chatBody = []byte(`{"model":"demo","messages":[{"role":"user","content":"hello"}]}`)

// ok are the messages of a short good answer.
func ok() []message {
	return []message{
		respHeaders(false, "200", "content-type", "application/json"),
		respBody(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, false),
		respBody("", true),
	}
}

// request is a whole chat request in full duplex.
func wholeChat(kv ...string) []message {
	return []message{chat(fds, kv...), reqBody(chatBody, false), reqBody(nil, true)}
}

func join(parts ...[]message) (out []message) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func isReset(err error) bool { return errors.Is(err, errReset) }

func equalBytes(t tester, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, want %d, or other bytes", what, len(got), len(want))
	}
}

// unknown is a message that only later gateways send.
func unknown() message {
	return message{msg: &pb.ProcessingRequest{FlowControlInit: &pb.ProcessingRequest_FlowControlInit{InitialWindowDownstreamToSidestream: 1}}}
}

// reqAsResponse is a message of response headers without a status.
func reqAsResponse() *pb.ProcessingRequest {
	return &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headerMap("content-type", "text/plain")}}}
}
