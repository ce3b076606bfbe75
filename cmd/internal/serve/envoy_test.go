package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/presage-router/presage/internal/loopback"
)

// TestDeployEnvoyServes runs the example of deploy/envoy in a real Envoy, with free ports in place of its
// own: requests reach the engine that was picked, and the next one when that is gone.
func TestDeployEnvoyServes(t *testing.T) {
	t.Parallel()
	engines := []*engine{newEngine(t, "e1"), newEngine(t, "e2")}
	l := throughEnvoy(t, 2, engines)
	for i := range 20 {
		a := l.post(context.Background(), fmt.Sprintf("question %d", i))
		if !a.complete() || a.header.Get("x-presage-decision") == "" {
			t.Fatalf("%+v", a)
		}
	}
	if engines[0].began.Load() == 0 || engines[1].began.Load() == 0 {
		t.Errorf("%d and %d requests", engines[0].began.Load(), engines[1].began.Load())
	}
	gone := engines[0].began.Load()
	engines[0].Close()
	for i := range 20 {
		if a := l.post(context.Background(), fmt.Sprintf("another question %d", i)); !a.complete() || a.header.Get("x-engine") != "e2" {
			t.Fatalf("%+v", a)
		}
	}
	if engines[0].began.Load() != gone {
		t.Error("a closed engine served")
	}
	l.settled()
	if req, err := http.NewRequest(http.MethodGet, l.front.URL+"/v1/models", http.NoBody); err != nil {
		t.Fatal(err)
	} else {
		req.Header.Set("x-gateway-destination-endpoint", "127.0.0.1:1") // a client may not choose
		resp, err := l.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// TestDeployEnvoyEjects: where the gateway is told of one endpoint alone, its own 503 for a closed
// engine counts against that: three requests are lost, no more until it is probed.
func TestDeployEnvoyEjects(t *testing.T) {
	t.Parallel()
	engines := []*engine{newEngine(t, "e1"), newEngine(t, "e2")}
	l := throughEnvoy(t, 1, engines)
	engines[0].Close()
	lost := 0
	for i := range 40 {
		if a := l.post(context.Background(), fmt.Sprintf("question %d", i)); !a.complete() {
			lost++
		}
	}
	if lost > 4 { // a probe may fall within a slow run
		t.Errorf("%d of 40 requests were lost", lost)
	}
}

// throughEnvoy runs the example of deploy/envoy, with free ports in place of its own, before a service
// that names so many endpoints in an answer.
func throughEnvoy(t *testing.T, answers int, engines []*engine) *lab {
	t.Helper()
	envoy := os.Getenv("PRESAGE_ENVOY")
	if _, err := os.Stat(envoy); err != nil {
		t.Skip("no Envoy: set PRESAGE_ENVOY to its path, or run make tools")
	}
	text, err := os.ReadFile("../../../deploy/envoy/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Answer.Endpoints = answers
	l := newLab(t, c, Deps{Endpoints: endpoints(engines...)})
	free, err := loopback.Free(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	front := free[0]
	conf := string(text)
	for port, addr := range map[string]string{
		"8080": front, "9901": "127.0.0.1:0", "9002": l.Addrs().ExtProc,
		"8000": engines[0].addr().String(), "8001": engines[1].addr().String(),
	} {
		_, own, err := net.SplitHostPort(addr)
		if err != nil || strings.Count(conf, "port_value: "+port+"}") != 1 {
			t.Fatalf("port %s is not once in the example: %v", port, err)
		}
		conf = strings.Replace(conf, "port_value: "+port+"}", "port_value: "+own+"}", 1)
	}
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	write(t, path, conf)
	cmd := exec.Command(envoy, "-c", path, "--disable-hot-restart", "--log-level", "error", "--concurrency", "1")
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	l.front.URL = "http://" + front
	l.eventually("an answer through Envoy", func() bool { return l.post(context.Background(), "hello").complete() })
	return l
}
