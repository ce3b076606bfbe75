package admin

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files from what the code does now")

// golden compares with a file in testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), see -rewrite\n%s", file, diff)
	}
}

// site is a router with a ring behind an admin handler.
type site struct {
	router  *router.Router
	ring    *Ring
	handler http.Handler
}

func newSite(t *testing.T, endpoints int, change func(o *Options)) *site {
	t.Helper()
	s := &site{ring: NewRing(RingOptions{})}
	s.router = router.New(router.Options{Fleet: pool(t, endpoints), Policy: policy(t, "weighted"), Recorder: s.ring, Observer: s.ring, Seed: 11, Prefixes: held{}})
	o := Options{Address: "127.0.0.1:9090", Router: s.router, Ring: s.ring, Policies: baseline.Policies(), Now: func() time.Time { return t0.Add(time.Second) },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, 200, "presage_up 1") })}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = h
	return s
}

// held is a prefix index in which the third endpoint holds most of everything.
type held struct{}

func (held) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	for i := range snap.States {
		if hits[i] = 0; i == 2 {
			hits[i] = int32(len(blocks) * 92 / 100)
		}
	}
}
func (held) Insert(fleet.Ref, []uint64)            {}
func (held) Correct(fleet.Ref, []uint64, int, int) {}
func (held) Withdraw(fleet.Ref, []uint64, int)     {}

// run routes one request and ends it; ttft 0 leaves it open.
func (s *site) run(t *testing.T, ttft time.Duration, cause fleet.Cause) router.ID {
	t.Helper()
	var fl router.Flight
	if err := s.router.Route(&router.Ask{Now: t0, Req: prompt(8214)}, &fl); err != nil {
		t.Fatal(err)
	}
	if ttft > 0 {
		fl.Status(200)
		fl.Tokens(t0.Add(ttft), 1)
		fl.Tokens(t0.Add(ttft+450*time.Millisecond), 9)
		fl.Finish(t0.Add(ttft+450*time.Millisecond), &router.Outcome{Cause: cause, Usage: router.Usage{Prompt: 8214, Cached: 7552, Output: 10}})
	}
	return fl.ID
}

// call asks for a page.
func (s *site) call(method, target string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, http.NoBody)
	req.Host = "127.0.0.1:9090"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, req)
	return rec
}

// TestGoldenExplain is the text an operator gets, for the ends a request can have.
func TestGoldenExplain(t *testing.T) {
	s := newSite(t, 11, nil)
	var out strings.Builder
	show := func(what string, id router.ID, o TextOptions) {
		out.WriteString("# " + what + "\n")
		if err := s.ring.Get(id).Text(&out, o); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n")
	}
	show("still running", s.run(t, 0, fleet.Open), TextOptions{})
	show("within its SLO", s.run(t, 120*time.Millisecond, fleet.Complete), TextOptions{})
	show("missed", s.run(t, 1310*time.Millisecond, fleet.Complete), TextOptions{All: true})
	show("client gone, on a terminal without UTF-8", s.run(t, 120*time.Millisecond, fleet.ClientGone), TextOptions{ASCII: true})
	s.router.SetPolicy(policy(t, "llmd-sticky-token"))
	show("others left out", s.run(t, 120*time.Millisecond, fleet.Complete), TextOptions{})
	s.router.SetPolicy(policy(t, "round-robin"))
	show("a policy without terms", s.run(t, 120*time.Millisecond, fleet.Complete), TextOptions{})
	s.router.SetPolicy(policy(t, "dynamo-linear"))
	show("a cost in blocks", s.run(t, 120*time.Millisecond, fleet.Complete), TextOptions{})
	s.router.SetPolicy(broken{})
	show("a policy that failed", s.run(t, 120*time.Millisecond, fleet.Complete), TextOptions{})
	golden(t, "explain.txt", out.String())
}

type broken struct{}

func (broken) Name() string                                { return "broken" }
func (broken) Route(*router.Query, *router.Decision) error { panic("index out of range") }

func TestExplainPage(t *testing.T) {
	s := newSite(t, 4, nil)
	if rec := s.call("GET", "/explain?last=1"); rec.Code != 404 || !strings.Contains(rec.Body.String(), "no decision yet") {
		t.Errorf("before any request: %d %s", rec.Code, rec.Body)
	}
	slow := s.run(t, 1310*time.Millisecond, fleet.Complete)
	last := s.run(t, 120*time.Millisecond, fleet.Complete)
	var x Explained
	decode := func(rec *httptest.ResponseRecorder, into any) {
		t.Helper()
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("status %d, %s: %s", rec.Code, rec.Header().Get("Content-Type"), rec.Body)
		}
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	decode(s.call("GET", "/explain?id="+slow.String()), &x)
	ours, err := json.Marshal(s.ring.Get(slow))
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&x)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(ours), string(again)); diff != "" {
		t.Errorf("(-ring +page)\n%s", diff)
	}
	if x.Endpoint != "h100-3" || x.Reason != "cache" || x.Outcome.Took.TTFT != 1310 || x.Outcome.Missed[0] != "ttft" || !x.All {
		t.Errorf("%+v", x)
	}
	x = Explained{}
	if decode(s.call("GET", "/explain?last=1"), &x); x.ID != last.String() {
		t.Errorf("last is %s", x.ID)
	}
	var worst struct{ Decisions []Explained }
	if decode(s.call("GET", "/explain?worst=10"), &worst); len(worst.Decisions) != 2 || worst.Decisions[0].ID != slow.String() {
		t.Errorf("worst is %+v", worst)
	}
	text := s.call("GET", "/explain?format=text&id="+slow.String()).Body.String()
	if !strings.HasPrefix(text, slow.String()+"  14:07:31.412  -> h100-3  ✕ missed TTFT") {
		t.Errorf("text: %s", text)
	}
	for target, want := range map[string]struct {
		code int
		text string
	}{
		"/explain":                       {400, "give one of"},
		"/explain?id=d-1-1&last=1":       {400, "give one of"},
		"/explain?id=foo":                {400, "foo: no decision id"},
		"/explain?id=d-1-1%0aevil":       {400, `no decision id`},
		"/explain?id=d-1-1":              {404, "d-1-1: not kept"},
		"/explain?worst=0":               {400, "worst: 0: not a number from 1 to 100"},
		"/explain?worst=1e9":             {400, "worst: 1e9"},
		"/explain?last=1&format=xml":     {400, "format: xml: json or text"},
		"/debug/pprof/":                  {404, ""}, // not asked for
		"/debug/pprof/profile?seconds=1": {404, ""},
	} {
		if rec := s.call("GET", target); rec.Code != want.code || !strings.Contains(rec.Body.String(), want.text) {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

func TestEndpointsPage(t *testing.T) {
	s := newSite(t, 3, nil)
	s.run(t, 0, fleet.Open)
	f := s.router.Fleet()
	var snap fleet.Snapshot
	f.Snapshot(t0, &snap)
	served := snap.States[2].Endpoint // by its cache
	draining := *snap.States[0].Endpoint
	draining.Drain = true
	fresh := &fleet.Endpoint{Name: "new", Addr: draining.Addr, Model: "llama-3.1-8b"}
	fresh.Addr = served.Addr // takes over the address of the one that leaves
	if _, err := f.Sync(t0, []*fleet.Endpoint{&draining, snap.States[1].Endpoint, fresh}); err != nil {
		t.Fatal(err)
	}
	var page struct {
		Generation         int
		Endpoints, Leaving []Endpoint
	}
	rec := s.call("GET", "/endpoints")
	if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range page.Endpoints {
		got[e.Name] = e.State
	}
	if diff := cmp.Diff(map[string]string{"h100-1": "draining", "h100-2": "ready", "new": "warming"}, got); diff != "" {
		t.Error(diff)
	}
	if len(page.Leaving) != 1 || page.Leaving[0].Name != "h100-3" || page.Leaving[0].Ledger.Requests != 1 || page.Leaving[0].Ledger.Oldest != 1000 {
		t.Errorf("leaving %+v", page.Leaving)
	}
	for _, e := range page.Endpoints {
		if e.Name == "h100-2" && (e.Load == nil || e.Load.Age != 1040 || *e.Load.Waiting != 1 || e.Load.KVTokens != nil) {
			t.Errorf("load %+v", e.Load)
		}
		if e.Name == "new" && e.Load != nil {
			t.Errorf("a load of an endpoint never scraped: %+v", e.Load)
		}
	}
}

func TestPoliciesAndProbes(t *testing.T) {
	var notReady error
	s := newSite(t, 2, func(o *Options) { o.Ready = func() error { return notReady } })
	var page struct {
		Current   string
		Fallbacks uint64
		LastPanic string `json:"last_panic"`
		Policies  []struct{ Name, About string }
	}
	s.router.SetPolicy(broken{})
	s.run(t, 0, fleet.Open)
	if err := json.Unmarshal(s.call("GET", "/policies").Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if page.Current != "broken" || page.Fallbacks != 1 || page.LastPanic != "broken: index out of range" || len(page.Policies) != len(baseline.Policies()) {
		t.Errorf("%+v", page)
	}
	if rec := s.call("GET", "/readyz"); rec.Code != 200 {
		t.Errorf("ready: %d", rec.Code)
	}
	notReady = errors.New("no endpoints yet\nforged")
	if rec := s.call("GET", "/readyz"); rec.Code != 503 || rec.Body.String() != "not ready: no endpoints yet\\nforged\n" {
		t.Errorf("not ready: %d %s", rec.Code, rec.Body)
	}
	if rec := s.call("GET", "/healthz"); rec.Code != 200 {
		t.Errorf("healthy: %d", rec.Code)
	}
	if rec := s.call("GET", "/"); !strings.Contains(rec.Body.String(), "/explain?last=1") {
		t.Errorf("index: %s", rec.Body)
	}
}

// TestB49OpenPages: with a token, every page but the probes wants it, whatever else is switched on.
func TestB49OpenPages(t *testing.T) {
	const token = "correct horse battery staple"
	for _, profile := range []bool{false, true} {
		s := newSite(t, 2, func(o *Options) { o.Address, o.Token, o.Profile = "0.0.0.0:9090", token, profile })
		pages := []string{"/", "/metrics", "/explain?last=1", "/endpoints", "/policies", "/trace"}
		if profile {
			pages = append(pages, "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/trace")
		}
		for _, page := range pages {
			for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + token, token, "Bearer " + token + " ", "Bearer  " + token} {
				rec := s.call("GET", page, "Authorization", auth)
				if rec.Code != 401 || rec.Header().Get("WWW-Authenticate") == "" || strings.Contains(rec.Body.String(), "h100") {
					t.Errorf("%s with %q: %d", page, auth, rec.Code)
				}
			}
		}
		for page, want := range map[string]int{"/": 200, "/metrics": 200, "/endpoints": 200, "/explain?last=1": 404} {
			if rec := s.call("GET", page, "Authorization", "bearer "+token); rec.Code != want {
				t.Errorf("%s with the token: %d", page, rec.Code)
			}
		}
		for _, page := range []string{"/healthz", "/readyz"} {
			if rec := s.call("GET", page); rec.Code != 200 {
				t.Errorf("%s: %d", page, rec.Code)
			}
		}
	}
}

func TestOpenAddressNeedsToken(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:9090": true, "[::1]:9090": true, "localhost:9090": true, "127.1.2.3:9090": true,
		":9090": false, "0.0.0.0:9090": false, "[::]:9090": false, "10.0.0.1:9090": false, "example.test:9090": false, "9090": false, "": false,
	} {
		_, err := New(Options{Address: address})
		if (err == nil) != ok {
			t.Errorf("%q without a token: %v", address, err)
		}
		if _, err := New(Options{Address: address, Token: "t"}); err != nil {
			t.Errorf("%q with a token: %v", address, err)
		}
	}
	_, err := New(Options{Address: ":9090"})
	if want := "listen.admin: :9090: others can reach it and there is no token; set admin.token or listen on 127.0.0.1"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestRebinding: a name that an attacker points at this address gets nothing, not even the probes.
func TestRebinding(t *testing.T) {
	s := newSite(t, 1, func(o *Options) { o.Hosts = []string{"presage.internal"} })
	for host, want := range map[string]int{
		"127.0.0.1:9090": 200, "localhost:9090": 200, "LOCALHOST": 200, "[::1]:9090": 200, "10.1.2.3:9090": 200, "presage.internal:9090": 200, "[fd00::1]": 200,
		"evil.example": 403, "evil.example:9090": 403, "localhost.evil.example:9090": 403, "127.0.0.1.evil.example": 403, "": 403,
	} {
		for _, page := range []string{"/endpoints", "/healthz"} {
			if rec := s.call("GET", page, "Host", host); rec.Code != want {
				t.Errorf("%s of host %q: %d, want %d", page, host, rec.Code, want)
			}
		}
	}
}

// TestForeignOrigins: no page takes a POST, least of all one that another site's page made.
func TestForeignOrigins(t *testing.T) {
	s := newSite(t, 1, nil)
	for _, page := range []string{"/endpoints", "/policies", "/explain"} {
		if rec := s.call("POST", page, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); rec.Code != 403 {
			t.Errorf("POST %s from another origin: %d", page, rec.Code)
		}
		if rec := s.call("POST", page); rec.Code != 405 {
			t.Errorf("POST %s: %d", page, rec.Code)
		}
	}
	h := s.call("GET", "/endpoints").Header()
	if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self'") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", h)
	}
}

// TestB49UntrustedText: names that clients and engines choose reach the pages as text and nothing else.
func TestB49UntrustedText(t *testing.T) {
	s := newSite(t, 2, nil)
	for _, model := range []string{"m\nlevel=error msg=forged", "m\x00x", "\x1b[2J", "../../etc/passwd", strings.Repeat("x", 10_000), "<script>alert(1)</script>", "\u202eevil"} {
		req := prompt(640)
		req.Model = model
		var fl router.Flight
		if err := s.router.Route(&router.Ask{Now: t0, Req: req}, &fl); err != nil {
			t.Fatal(err)
		}
		fl.Finish(t0, &router.Outcome{Cause: fleet.Complete})
		for _, format := range []string{"json", "text"} {
			body := s.call("GET", "/explain?format="+format+"&id="+fl.ID.String()).Body.String()
			if !strings.Contains(body, fl.ID.String()) || strings.ContainsAny(strings.ReplaceAll(body, "\n", ""), "\x00\x1b\u202e") ||
				strings.Contains(body, "\nlevel=") || len(body) > 4000 || format == "json" && strings.Contains(body, "<script>") {
				t.Errorf("%s of %.20q: %s", format, model, body)
			}
		}
	}
}

// TestB49NothingOfThePromptIsKept: the ring copies figures, no text; a model name that is part of a
// large buffer does not keep that buffer alive.
func TestB49NothingOfThePromptIsKept(t *testing.T) {
	s := newSite(t, 2, nil)
	body := []byte(strings.Repeat("SECRET-123 ", 1000) + "llama-3.1-8b")
	req := prompt(640)
	req.Model = string(body[len(body)-12:])
	req.Session, req.Tenant, req.ID = "SECRET-123", "SECRET-123", "SECRET-123"
	var fl router.Flight
	if err := s.router.Route(&router.Ask{Now: t0, Req: req}, &fl); err != nil {
		t.Fatal(err)
	}
	fl.Finish(t0, &router.Outcome{Cause: fleet.Complete})
	for _, page := range []string{"/explain?last=1", "/endpoints", "/explain?last=1&format=text"} {
		if strings.Contains(s.call("GET", page).Body.String(), "SECRET") {
			t.Errorf("%s tells the secret", page)
		}
	}
}
