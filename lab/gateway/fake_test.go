package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// picker is a scripted endpoint picker that records what it was sent.
type picker struct {
	extproc.UnimplementedExternalProcessorServer
	// reply handles one message; nil passes everything through to the target.
	reply func(p *picker, s extproc.ExternalProcessor_ProcessServer, m *extproc.ProcessingRequest) error
	// target is the destination header and metadata of every answer.
	target string

	mu    sync.Mutex
	seen  []*extproc.ProcessingRequest
	ended chan error // one result per stream
}

var errClose = errors.New("close the stream cleanly")

func (p *picker) Process(s extproc.ExternalProcessor_ProcessServer) error {
	err := p.process(s)
	p.ended <- err
	if errors.Is(err, errClose) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *picker) process(s extproc.ExternalProcessor_ProcessServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.seen = append(p.seen, m)
		p.mu.Unlock()
		if p.reply != nil {
			if err := p.reply(p, s, m); err != nil {
				return err
			}
			continue
		}
		if err := s.Send(p.pass(m)); err != nil {
			return err
		}
	}
}

// messages names what was seen so far, in order: RH, RB, RB., RT, PH, PB, PB., PT, a dot for the end.
func (p *picker) messages() (names []string, all []*extproc.ProcessingRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dot := map[bool]string{true: "."}
	for _, m := range p.seen {
		switch v := m.Request.(type) {
		case *extproc.ProcessingRequest_RequestHeaders:
			names = append(names, "RH"+dot[v.RequestHeaders.EndOfStream])
		case *extproc.ProcessingRequest_RequestBody:
			names = append(names, "RB"+dot[v.RequestBody.EndOfStream])
		case *extproc.ProcessingRequest_RequestTrailers:
			names = append(names, "RT")
		case *extproc.ProcessingRequest_ResponseHeaders:
			names = append(names, "PH"+dot[v.ResponseHeaders.EndOfStream])
		case *extproc.ProcessingRequest_ResponseBody:
			names = append(names, "PB"+dot[v.ResponseBody.EndOfStream])
		case *extproc.ProcessingRequest_ResponseTrailers:
			names = append(names, "PT")
		}
	}
	return names, p.seen
}

func set(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func streamed(p []byte, end bool) *extproc.BodyResponse {
	return &extproc.BodyResponse{Response: &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
		Mutation: &extproc.BodyMutation_StreamedResponse{StreamedResponse: &extproc.StreamedBodyResponse{Body: p, EndOfStream: end}},
	}}}
}

// pass is the answer that changes nothing but the destination.
func (p *picker) pass(m *extproc.ProcessingRequest) *extproc.ProcessingResponse {
	switch v := m.Request.(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		meta := &structpb.Struct{Fields: map[string]*structpb.Value{lbNamespace: structpb.NewStructValue(object(destinationKey, p.target))}}
		return &extproc.ProcessingResponse{
			Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{
				HeaderMutation: &extproc.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{set(destinationKey, p.target)}},
			}}},
			DynamicMetadata: meta,
		}
	case *extproc.ProcessingRequest_RequestBody:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: streamed(v.RequestBody.Body, v.RequestBody.EndOfStream)}}
	case *extproc.ProcessingRequest_RequestTrailers:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}}}
	case *extproc.ProcessingRequest_ResponseHeaders:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}}}
	case *extproc.ProcessingRequest_ResponseBody:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: streamed(v.ResponseBody.Body, v.ResponseBody.EndOfStream)}}
	default:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}}}
	}
}

// lab is a gateway between a test and a picker.
type lab struct {
	url    string
	client *http.Client
	p      *picker
}

// start serves the picker and a gateway before it. A nil picker is one that nobody serves.
func start(t *testing.T, p *picker, cfg Config) *lab {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.EPP = l.Addr().String()
	if p == nil {
		l.Close()
	} else {
		p.ended = make(chan error, 64)
		srv := grpc.NewServer()
		extproc.RegisterExternalProcessorServer(srv, p)
		go srv.Serve(l)
		t.Cleanup(srv.Stop)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		front.Close()
		g.Close()
	})
	return &lab{front.URL, client, p}
}

func backend(t *testing.T, h http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func (l *lab) do(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return resp, string(body)
}
