package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

type seen struct{ ch chan features.Observation }

func (s seen) Observe(o *features.Observation) { s.ch <- *o }

// TestRequestsAreServed follows one request through everything that is wired: gateway, decision,
// ledger, record, metrics, explanation.
func TestRequestsAreServed(t *testing.T) {
	e := newEngine(t, "e1")
	s := seen{make(chan features.Observation, 8)}
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints(e), Observers: []router.Observer{s}})
	a := l.post(context.Background(), "hello")
	if !a.complete() || a.header.Get("x-engine") != "e1" {
		t.Fatalf("%+v", a)
	}
	o := <-s.ch
	id := a.header.Get("x-presage-decision")
	if id == "" || o.ID != id || o.Endpoint != "e1" || o.Cause != fleet.Complete || o.PromptTokens != 40 || o.OutputTokens != 2 || o.TTFT <= 0 {
		t.Errorf("header %q, record %+v", id, o)
	}
	if o.SLO.TTFT != config.Default().SLO.TTFT {
		t.Errorf("the configured SLO is not in force: %v", o.SLO)
	}
	l.settled()
	status, body := l.admin("/explain?id=" + id)
	var x struct{ Endpoint, Policy, Why string }
	if err := json.Unmarshal([]byte(body), &x); err != nil || status != http.StatusOK || x.Endpoint != "e1" || x.Policy != "weighted" || x.Why == "" {
		t.Errorf("%d %s %v", status, body, err)
	}
	for series, want := range map[string]string{
		`presage_requests_total{model="demo",outcome="ok"}`: "1",
		`presage_slo_met_total{arm="none",model="demo"}`:    "1",
		`presage_config_generation`:                         "1",
		`presage_policy_info{policy="weighted"}`:            "1",
		`presage_endpoints{state="ready"}`:                  "1",
	} {
		l.eventually(series, func() bool { return l.metric(series) == want })
	}
	if got := l.send(context.Background(), "/v1/models", "{}"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("an opaque request was not passed on: %+v", got)
	}
}

// TestCacheSizes: what engines say about their memory bounds what the index believes them to hold.
func TestCacheSizes(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "e1")
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints(e)})
	var snap fleet.Snapshot
	l.eventually("the capacity of the engine's page", func() bool {
		l.fleet.Snapshot(time.Now(), &snap)
		st := &snap.States[0]
		shelf, ok := l.index.Shelf(fleet.Ref{Slot: st.Slot, Instance: st.Instance})
		return ok && shelf.Capacity == 16*1000*4/256 // 4 bytes a token, 256 bytes a block
	})
}

// TestResetPrefixes: what a policy learned of caches is gone, as between the policies of a demo.
func TestResetPrefixes(t *testing.T) {
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	if a := l.post(context.Background(), strings.Repeat("long prompt ", 400)); !a.complete() {
		t.Fatalf("%+v", a)
	}
	l.settled()
	if n := l.index.Stats().Blocks; n == 0 {
		t.Fatal("nothing was learned")
	}
	l.ResetPrefixes()
	if n := l.index.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func TestSetPolicy(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Profiles = map[string]router.ProfileSpec{"mine": {Scorers: map[string]*float64{"requests": nil}}}
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	for _, name := range append(Policies().Names(), "mine") {
		if err := l.SetPolicy(name); err != nil {
			t.Fatal(err)
		}
		if a := l.post(context.Background(), "hello"); !a.complete() {
			t.Errorf("%s: %+v", name, a)
		}
		if got := l.metric(`presage_policy_info{policy="` + name + `"}`); got != "1" {
			t.Errorf("policy_info of %s: %q", name, got)
		}
	}
	err := l.SetPolicy("mime")
	if want := `policy: "mime" unknown; nearest mine, all: presage policies`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNoEndpoints: without endpoints the service answers by itself, with a reason.
func TestNoEndpoints(t *testing.T) {
	e := newEngine(t, "e1")
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints()})
	if status, body := l.admin("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "no endpoint") {
		t.Errorf("ready: %d %s", status, body)
	}
	refused := func() {
		t.Helper()
		a := l.post(context.Background(), "hello")
		var body struct{ Error struct{ Message string } }
		if a.status != http.StatusServiceUnavailable || a.header.Get("x-llm-d-request-dropped-reason") != "rejected-no-endpoint" ||
			json.Unmarshal([]byte(a.body), &body) != nil || body.Error.Message == "" {
			t.Errorf("%+v", a)
		}
	}
	refused()
	if err := l.SetEndpoints(endpoints(e)); err != nil {
		t.Fatal(err)
	}
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Errorf("%+v", a)
	}
	if err := l.SetEndpoints(nil); err != nil {
		t.Fatal(err)
	}
	refused()
	if status, _ := l.admin("/readyz"); status != http.StatusOK {
		t.Errorf("not ready although it answers: %d", status)
	}
	l.settled()
}

// TestB24StaleLoads: engines whose pages cannot be read go on serving, and it is seen.
func TestB24StaleLoads(t *testing.T) {
	t.Parallel()
	engines := []*engine{newEngine(t, "e1"), newEngine(t, "e2"), newEngine(t, "e3")}
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints(engines...)})
	l.eventually("pages", func() bool { return l.metric(`presage_endpoints{state="ready"}`) == "3" })
	for _, e := range engines {
		e.page.Store(nil)
	}
	l.eventually("failed scrapes", func() bool { return l.metric(`presage_endpoint_failed_scrapes{endpoint="e1"}`) > "0" })
	stop := l.traffic(4)
	l.eventually("stale pages", func() bool { return l.metric(`presage_endpoints{state="stale"}`) == "3" })
	for i, a := range stop() {
		if !a.complete() {
			t.Fatalf("request %d: %+v", i, a)
		}
	}
	good := enginePage
	engines[1].page.Store(&good)
	l.eventually("the recovered one", func() bool { return l.metric(`presage_endpoints{state="ready"}`) == "1" })
	if a := l.post(context.Background(), "hello"); !a.complete() || a.header.Get("x-engine") != "e2" {
		t.Errorf("the endpoint whose page is fresh was not preferred: %+v", a)
	}
	l.settled()
}

func TestUnknownModel(t *testing.T) {
	const body = `{"model":"nobody","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for _, strict := range []bool{false, true} {
		c := testConfig()
		if strict {
			c.Request.UnknownModel = config.Unknown404
		}
		l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
		want := http.StatusOK
		if strict {
			want = http.StatusNotFound
		}
		if a := l.send(context.Background(), "/v1/chat/completions", body); a.status != want {
			t.Errorf("strict %t: %+v", strict, a)
		}
	}
}

// TestListenErrors: a port that is taken is named with its key, and nothing stays open.
func TestListenErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := testConfig()
	c.Listen.Admin = taken.Addr().String()
	_, err = New(c, Deps{Endpoints: endpoints()})
	if want := "listen.admin " + c.Listen.Admin + ": in use by another process; free it or set listen.admin"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	c.Listen.Admin, c.Listen.ExtProc = "", "203.0.113.1:9002"
	_, err = New(c, Deps{Endpoints: endpoints()})
	if want := "listen.extproc 203.0.113.1:9002: no address of this machine; set listen.extproc"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOptionalListeners(t *testing.T) {
	c := testConfig()
	c.Listen.Health, c.Listen.Admin = "", ""
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	if a := l.Addrs(); a.Health != "" || a.Admin != "" || a.ExtProc == "" {
		t.Errorf("%+v", a)
	}
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Errorf("%+v", a)
	}
}

func TestAdminToken(t *testing.T) {
	c := testConfig()
	c.Admin.Token = "0123456789abcdef"
	l := newLab(t, c, Deps{Endpoints: endpoints()})
	if status, _ := l.admin("/metrics"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
}

func TestSelfSigned(t *testing.T) {
	c := testConfig()
	c.TLS.Mode = config.TLSSelfSigned
	l := newLab(t, c, Deps{Endpoints: endpoints()})
	conn, err := tls.Dial("tcp", l.Addrs().ExtProc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Errorf("protocol %q", got)
	}
}

func TestRunsOnce(t *testing.T) {
	l := newLab(t, testConfig(), Deps{Endpoints: endpoints()})
	l.eventually("a running service", l.ran.Load)
	if err := l.Run(context.Background()); err == nil {
		t.Error("it ran twice")
	}
}

// TestStoppedBeforeRun: a service that is never run leaves nothing behind.
func TestStoppedBeforeRun(t *testing.T) {
	s, err := New(testConfig(), Deps{Endpoints: endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
	if err := s.Run(context.Background()); err != nil {
		t.Error(err)
	}
}
