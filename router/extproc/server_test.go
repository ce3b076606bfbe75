package extproc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/presage-router/presage/features/fleet"
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

// TestB47Shutdown: running answers run on, idle streams do not delay, new requests are taken for a
// while, what is left at the deadline is cut and counted.
func TestB47Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan struct{})
		l := newLab(t, labOptions{Options: Options{Linger: 2 * time.Second, Admission: admit(func(ctx context.Context) error {
			select {
			case <-queue:
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		})}})
		l.server.SetReady(true)
		conn := l.dial(insecure.NewCredentials(), l.server.Serve)
		other := l.dial(insecure.NewCredentials(), l.server.Serve)
		s3 := startCall(t, conn, wholeChat()...) // queued
		synctest.Wait()
		close(queue)
		s1, s4 := startCall(t, conn, streamChat()...), startCall(t, conn, streamChat()...)
		for _, c := range []*call{s1, s4} {
			c.recv(2)
			c.send(sseHeaders(), respBody(delta("x"), false))
			c.recv(2)
		}
		s2 := startCall(t, other) // idle
		synctest.Wait()

		start := time.Now()
		over := make(chan time.Duration)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			l.server.Shutdown(ctx)
			over <- time.Since(start)
		}()
		synctest.Wait()
		if got := check(t, other, "readiness"); got != "NOT_SERVING" {
			t.Errorf("readiness is %s", got)
		}
		if got := check(t, other, "liveness"); got != "SERVING" {
			t.Errorf("liveness is %s", got)
		}
		if got := s3.recv(2); got != "headers body+$" {
			t.Errorf("queued request: %q", got)
		}
		s3.send(ok()...)
		s3.recv(3)
		time.Sleep(time.Second)
		s5 := startCall(t, other, wholeChat()...)
		if got := s5.recv(2); got != "headers body+$" {
			t.Errorf("new request: %q", got)
		}
		s5.send(ok()...)
		s5.recv(3)
		time.Sleep(2 * time.Second)
		s1.send(respBody(event("[DONE]"), true))
		if got := s1.recv(1); got != "BODY+$" || s1.end() != nil {
			t.Errorf("answer that ends in time: %q", got)
		}
		if d := <-over; d < 5*time.Second || d > 6*time.Second {
			t.Errorf("over after %v", d)
		}
		if err := s4.end(); err == nil {
			t.Error("the answer that does not end was not cut")
		}
		if err := s2.end(); err == nil {
			t.Error("the idle stream outlives the service")
		}
		causes := map[fleet.Cause]int{}
		for _, o := range l.observations() {
			causes[o.Cause]++
		}
		if causes[fleet.Complete] != 3 || causes[fleet.Internal] != 1 {
			t.Errorf("causes %v", causes)
		}
		synctest.Wait()
		l.settled()
	})
}

// TestB47IdleStreamsDoNotDelayTheEnd, nor does a watch of the health service.
func TestB47IdleStreamsDoNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{})
		conn := l.dial(insecure.NewCredentials(), l.server.Serve)
		idle := startCall(t, conn)
		watch, err := grpc_health_v1.NewHealthClient(conn).Watch(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l.server.Shutdown(ctx)
		if d := time.Since(start); d > time.Second {
			t.Errorf("over after %v", d)
		}
		idle.end()
	})
}

// TestB47SecondSignal: Stop ends a shutdown that waits.
func TestB47SecondSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{Options: Options{Linger: time.Hour}})
		conn := l.dial(insecure.NewCredentials(), l.server.Serve)
		c := startCall(t, conn, wholeChat()...)
		c.recv(2)
		start := time.Now()
		time.AfterFunc(3*time.Second, l.server.Stop)
		l.server.Shutdown(context.Background())
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("over after %v", d)
		}
		if o := l.only(); o.Cause != fleet.Internal {
			t.Errorf("observed %v", o.Cause)
		}
		l.server.Shutdown(context.Background()) // again: nothing left to do
		l.server.Stop()
	})
}

func TestShutdownOfAnUnusedServer(t *testing.T) {
	l := newLab(t, labOptions{})
	l.server.Shutdown(context.Background())
	if err := l.server.Serve(bufconn.Listen(1)); err != nil {
		t.Errorf("Serve after the end: %v", err)
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

func TestTLS(t *testing.T) {
	self, err := SelfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(c *tls.Config) {
		t.Helper()
		der, err := x509.MarshalPKCS8PrivateKey(c.Certificates[0].PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificates[0].Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
			if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Files(cert, key); err == nil {
		t.Error("absent files were taken")
	}
	write(self)
	files, err := Files(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*tls.Config{"self-signed": self, "files": files} {
		l := newLab(t, labOptions{Options: Options{TLS: cfg}})
		pool := x509.NewCertPool()
		leaf, err := x509.ParseCertificate(self.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		pool.AddCert(leaf)
		conn := l.dial(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "localhost"}), l.server.Serve)
		c := startCall(t, conn, wholeChat()...)
		if got := c.recv(2); got != "headers body+$" {
			t.Errorf("%s: replies %q", name, got)
		}
		plaintext := l.dial(insecure.NewCredentials(), l.server.Serve)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if _, err := grpc_health_v1.NewHealthClient(plaintext).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: plaintext: %v", name, err)
		}
		cancel()
	}
	serial := func() string {
		c, err := files.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.String()
	}
	old := serial()
	later := time.Now().Add(time.Hour)
	touch := func() {
		later = later.Add(time.Minute)
		for _, f := range []string{cert, key} {
			if err := os.Chtimes(f, later, later); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(key, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch()
	if got := serial(); got != old {
		t.Error("a broken key pair replaced a good one")
	}
	fresh, err := SelfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write(fresh)
	touch()
	if got := serial(); got == old {
		t.Error("a new key pair is not used")
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
