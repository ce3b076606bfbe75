package extproc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/presage-router/presage/features/fleet"
)

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
