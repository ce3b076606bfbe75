package extproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// benchLab is the service without anybody who listens to it.
func benchLab(b *testing.B) *lab {
	b.Helper()
	l := &lab{t: b, fleet: new(fleet.Fleet), pool: new(poison)}
	ep := newLab(b, labOptions{})
	p, err := request.NewParser(request.Config{})
	if err != nil {
		b.Fatal(err)
	}
	if l.server, err = New(Options{Router: router.New(router.Options{Fleet: ep.fleet, Policy: first{}}), Parser: p}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.server.Stop)
	return l
}

// proxyHeaders are what a gateway shows of a usual request.
func proxyHeaders(n int) []string {
	return []string{":method", "POST", ":path", "/v1/chat/completions", ":authority", "gw.example.test", ":scheme", "http", "content-type", "application/json",
		"content-length", fmt.Sprint(n), "user-agent", "openai-python/1.50", "accept", "*/*", "accept-encoding", "gzip, deflate", "authorization", "Bearer sk-0123456789",
		"x-request-id", "0c3ae1d9-6b1e-4f1a-9d4c-2f6f0d3a8b11", "x-forwarded-proto", "http", "x-forwarded-for", "10.0.0.99"}
}

// exchangeOf are the messages of one exchange: the body in one chunk, then an empty end; the answer
// in one chunk, then an empty end.
func exchangeOf(body []byte) []message {
	answer := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("hello ", 60) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":60,"total_tokens":160}}`
	return []message{open(fds, false, proxyHeaders(len(body))...), reqBody(body, false), reqBody(nil, true),
		respHeaders(false, "200", "content-type", "application/json", "server", "uvicorn", "date", "Thu, 01 Jan 2026 00:00:00 GMT"), respBody(answer, false), respBody("", true)}
}

// packed are messages as they arrive.
func packed(tb tester, msgs []message) [][]byte {
	var out [][]byte
	for _, m := range msgs {
		b, err := proto.Marshal(m.msg)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// replay is a stream that plays packed messages and throws replies away.
type replay struct {
	grpc.ServerStream
	codec codec
	msgs  [][]byte
	next  int
}

func (r *replay) Context() context.Context { return context.Background() }

func (r *replay) RecvMsg(m any) error {
	if r.next == len(r.msgs) {
		return io.EOF
	}
	r.next++
	return r.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(r.msgs[r.next-1])}, m)
}

func (r *replay) SendMsg(m any) error {
	data, err := r.codec.Marshal(m)
	data.Free()
	return err
}

// BenchmarkExchange is what an exchange costs without gRPC.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{2 << 10, 220_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := benchLab(b)
			msgs := packed(b, exchangeOf(long(size)))
			c := newCodec(l.server.setting.memory.pool)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.server.process(&replay{codec: c, msgs: msgs}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEvent is what one event of a stream costs without gRPC, on top of the chunk's way.
func BenchmarkEvent(b *testing.B) {
	l := benchLab(b)
	const events = 1000
	msgs := append(streamChat(), sseHeaders())
	for range events {
		msgs = append(msgs, respBody(`data: {"id":"chatcmpl-81ecb2ace390374c","object":"chat.completion.chunk","created":1795957735,"model":"tiny","choices":[{"index":0,"delta":{"content":" presubmit"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`+"\n\n", false))
	}
	list := packed(b, append(msgs, respBody(event("[DONE]"), true)))
	c := newCodec(l.server.setting.memory.pool)
	b.ReportAllocs()
	start := time.Now()
	n := 0
	for b.Loop() {
		if err := l.server.process(&replay{codec: c, msgs: list}); err != nil {
			b.Fatal(err)
		}
		n += events
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n), "ns/event")
}

// bytesCodec sends and receives messages that are packed already.
type bytesCodec struct{ encoding.CodecV2 }

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// BenchmarkOverTCP is a whole exchange over loopback, with a client in the same process that only
// moves bytes: an upper bound of what the service costs.
func BenchmarkOverTCP(b *testing.B) {
	for _, size := range []int{2 << 10, 220_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := benchLab(b)
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = l.server.Serve(lis) }()
			conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{})))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			msgs := packed(b, exchangeOf(long(size)))
			b.ReportAllocs()
			b.SetParallelism(4)
			before := cpu()
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					exchangeOverTCP(b, conn, msgs)
				}
			})
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "us-cpu/op")
		})
	}
}

func exchangeOverTCP(b *testing.B, conn *grpc.ClientConn, msgs [][]byte) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/envoy.service.ext_proc.v3.ExternalProcessor/Process")
	if err != nil {
		b.Error(err)
		return
	}
	for i, m := range msgs {
		if i == 3 { // the answer comes once the request has gone out
			for done := false; !done; {
				var r []byte
				if err := s.RecvMsg(&r); err != nil {
					b.Error(err)
					return
				}
				done = len(r) < 62_000 && i > 0 && isLast(r)
			}
		}
		if err := s.SendMsg(&m); err != nil {
			b.Error(err)
			return
		}
	}
	for {
		var r []byte
		if err := s.RecvMsg(&r); err != nil {
			if !errors.Is(err, io.EOF) {
				b.Error(err)
			}
			return
		}
	}
}

// isLast reports whether a reply is the last piece of the request body.
func isLast(r []byte) bool {
	var m pb.ProcessingResponse
	return r[0] == 0x1a && proto.Unmarshal(r, &m) == nil && m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetEndOfStream()
}

// cpu is the time this process has used so far.
func cpu() time.Duration {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	var user, system int64
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}
