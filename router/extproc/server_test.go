package extproc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves the lab's service in memory and connects to it.
func (l *lab) dial(creds credentials.TransportCredentials, serve func(net.Listener) error) *grpc.ClientConn {
	l.t.Helper()
	lis := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		conn.Close()
		l.server.Stop()
		if err := <-served; err != nil {
			l.t.Errorf("Serve: %v", err)
		}
		lis.Close()
	})
	return conn
}

// call is a stream as a gateway opens it.
type call struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[pb.ProcessingRequest, pb.ProcessingResponse]
	cancel context.CancelFunc
}

func startCall(t *testing.T, conn *grpc.ClientConn, msgs ...message) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := pb.NewExternalProcessorClient(conn).Process(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	c := &call{t, s, cancel}
	c.send(msgs...)
	return c
}

func (c *call) send(msgs ...message) {
	c.t.Helper()
	for _, m := range msgs {
		if err := c.stream.Send(m.msg); err != nil {
			c.t.Fatal(err)
		}
	}
}

// recv returns the kinds of the next n replies.
func (c *call) recv(n int) string {
	c.t.Helper()
	var tr transcript
	for range n {
		r, err := c.stream.Recv()
		if err != nil {
			c.t.Fatalf("after %q: %v", tr.kinds(), err)
		}
		tr.replies = append(tr.replies, r)
	}
	return tr.kinds()
}

// end returns the status the stream ends with.
func (c *call) end() error {
	_, err := c.stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func TestOverGRPC(t *testing.T) {
	l := newLab(t, labOptions{})
	conn := l.dial(insecure.NewCredentials(), l.server.Serve)
	for range 3 { // streams are reused
		c := startCall(t, conn, wholeChat()...)
		if got := c.recv(2); got != "headers body+$" {
			t.Errorf("replies %q", got)
		}
		c.send(ok()...)
		if got := c.recv(3); got != "HEADERS BODY+ BODY+$" {
			t.Errorf("replies %q", got)
		}
		if err := c.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
	}
	c := startCall(t, conn, chat(fds), reqBody([]byte("no json"), true))
	if got := c.recv(1); got != "immediate 400" || c.end() != nil {
		t.Errorf("replies %q", got)
	}
}

// TestB06LargeMessages: one message may hold a body of 5 MiB, as buffered mode sends it.
func TestB06LargeMessages(t *testing.T) {
	l := newLab(t, labOptions{})
	conn := l.dial(insecure.NewCredentials(), l.server.Serve)
	body := long(5 << 20)
	c := startCall(t, conn, chat(buffered), reqBody(body, true))
	if got := c.recv(2); got != "headers body" {
		t.Errorf("replies %q", got)
	}
	c.cancel()
	c = startCall(t, conn, chat(fds), reqBody(body, true))
	var sent []byte
	for !c.t.Failed() {
		r, err := c.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		s := r.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		sent = append(sent, s.GetBody()...)
		if s.GetEndOfStream() {
			break
		}
	}
	equalBytes(t, "body", sent, body)
}

func check(t *testing.T, conn *grpc.ClientConn, name string) string {
	t.Helper()
	r, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: name})
	if err != nil {
		return status.Code(err).String()
	}
	return r.Status.String()
}

func TestHealth(t *testing.T) {
	l := newLab(t, labOptions{})
	main, side := l.dial(insecure.NewCredentials(), l.server.Serve), l.dial(insecure.NewCredentials(), l.server.ServeHealth)
	names := []string{"", "readiness", "inference-extension", "envoy.service.ext_proc.v3.ExternalProcessor"}
	all := func(when, want string) {
		t.Helper()
		for _, conn := range []*grpc.ClientConn{main, side} {
			for _, n := range names {
				if got := check(t, conn, n); got != want {
					t.Errorf("%s: %q is %s, want %s", when, n, got, want)
				}
			}
			if got := check(t, conn, "liveness"); got != "SERVING" {
				t.Errorf("%s: liveness is %s", when, got)
			}
		}
	}
	all("before", "NOT_SERVING")
	l.server.SetReady(true)
	all("ready", "SERVING")
	l.server.SetReady(false)
	all("not ready", "NOT_SERVING")
	l.server.SetReady(true)
	l.server.health.drain()
	l.server.SetReady(true) // no way back
	all("draining", "NOT_SERVING")
	if got := check(t, main, "something else"); got != "NotFound" {
		t.Errorf("unknown name is %s", got)
	}
}

func TestServeSaysWhereItFailed(t *testing.T) {
	l := newLab(t, labOptions{})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis.Close()
	if err := l.server.Serve(lis); err == nil {
		t.Error("served on a closed listener")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := newLab(t, labOptions{}).server
	for want, o := range map[string]Options{
		"extproc: no router":                                                {Parser: good.parser.Load()},
		"extproc: no parser":                                                {Router: good.router},
		"extproc: answer endpoints: -1 is negative":                         {Router: good.router, Parser: good.parser.Load(), Answer: Answer{Endpoints: -1}},
		"extproc: linger: -1s is negative":                                  {Router: good.router, Parser: good.parser.Load(), Linger: -time.Second},
		"extproc: max body: -1 is negative; use 0 for the default":          {Router: good.router, Parser: good.parser.Load(), Limits: Limits{MaxBody: -1}},
		"extproc: max age: -5 is negative; use 0 for the default":           {Router: good.router, Parser: good.parser.Load(), Limits: Limits{MaxAge: -5}},
		"extproc: decision deadline: -1 is negative; use 0 for the default": {Router: good.router, Parser: good.parser.Load(), Limits: Limits{Decision: -1}},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if l := (Limits{Idle: time.Second}).withDefaults(); l.Idle != time.Second || l.MaxBody != 64<<20 || l.Decision != 5*time.Second {
		t.Errorf("defaults %+v", l)
	}
}

func TestNames(t *testing.T) {
	var got []string
	for o := OK; o <= Internal+1; o++ {
		got = append(got, o.String())
	}
	if want := []string{"ok", "upstream_error", "client_gone", "shed", "no_endpoint", "bad_request", "internal", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v", got)
	}
	if Decide.String() != "decide" || Relay.String() != "relay" {
		t.Error("phases")
	}
}

// TestManyStreamsAtOnce drives the service over one connection, as a gateway does.
func TestManyStreamsAtOnce(t *testing.T) {
	l := newLab(t, labOptions{})
	conn := l.dial(insecure.NewCredentials(), l.server.Serve)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 25 {
				c := startCall(t, conn, wholeChat()...)
				c.recv(2)
				if i%5 == 0 { // the client leaves
					c.cancel()
					continue
				}
				c.send(ok()...)
				c.recv(3)
				if err := c.end(); err != nil {
					t.Errorf("ended with %v", err)
				}
			}
		}()
	}
	wg.Wait()
	conn.Close()
	l.server.Shutdown(context.Background())
	if l.count("ended ok") != 160 || l.count("ended client_gone") != 40 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}
