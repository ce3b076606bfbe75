package extproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/internal/loopback"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/extproc"
)

// listener is one way to configure the filter.
type listener struct {
	Name, EPP, Request, Response   string
	FailOpen, ContentLength, Retry bool
}

const duplex = "FULL_DUPLEX_STREAMED"

var listeners = []listener{
	{Name: "duplex", EPP: "epp", Request: duplex, Response: duplex},
	{Name: "retry", EPP: "epp", Request: duplex, Response: duplex, Retry: true},
	{Name: "length", EPP: "epp", Request: duplex, Response: duplex, ContentLength: true},
	{Name: "half", EPP: "epp", Request: duplex, Response: "NONE"},
	{Name: "buffered", EPP: "epp", Request: "BUFFERED", Response: "BUFFERED"},
	{Name: "streamed", EPP: "epp", Request: "STREAMED", Response: "STREAMED"},
	{Name: "none", EPP: "epp", Request: "NONE", Response: "NONE"},
	{Name: "open-refused", EPP: "refused", Request: duplex, Response: duplex, FailOpen: true},
	{Name: "open-checked", EPP: "checked", Request: duplex, Response: duplex, FailOpen: true},
	{Name: "open-empty", EPP: "empty", Request: duplex, Response: duplex, FailOpen: true},
	{Name: "open-buffered", EPP: "refused", Request: "BUFFERED", Response: "NONE", FailOpen: true},
	{Name: "closed-refused", EPP: "refused", Request: duplex, Response: duplex},
	{Name: "hung", EPP: "hung", Request: duplex, Response: duplex},
}

// binary finds Envoy, or skips the test.
func binary(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("PRESAGE_ENVOY"); p != "" {
		return p
	}
	if p, err := exec.LookPath("envoy"); err == nil {
		return p
	}
	for dir, _ := os.Getwd(); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			p := filepath.Join(dir, ".cache", "envoy", "bin", "envoy")
			if _, err := os.Stat(p); err == nil {
				return p
			}
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	t.Skip("Envoy is neither named by PRESAGE_ENVOY nor in PATH nor in .cache/envoy/bin; its tests are left out")
	return ""
}

// site is Envoy with the service, three upstreams and one address where nobody listens.
type site struct {
	t      *testing.T
	ports  map[string]string // listener -> host:port
	fleet  *fleet.Fleet
	server *extproc.Server
	ups    []*upstream
	closed string
	policy *inOrder
	seen   observer
	hang   hanging
	log    string
}

// inOrder picks the endpoints in the order it was told.
type inOrder struct {
	mu    sync.Mutex
	addrs []string
}

func (*inOrder) Name() string { return "in order" }

func (p *inOrder) set(addrs ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addrs = addrs
}

func (p *inOrder) Route(q *router.Query, d *router.Decision) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.addrs {
		for i := range q.Snap.States {
			if !q.Keep[i] || q.Snap.States[i].Addr.String() != a {
				continue
			}
			if d.Index < 0 {
				d.Index, d.Propensity = i, 1
			} else {
				d.Fallback = append(d.Fallback, i)
			}
		}
	}
	return nil
}

// observer keeps the records.
type observer struct {
	mu   sync.Mutex
	list []features.Observation
}

func (o *observer) Observe(r *features.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, *r)
}

func (o *observer) take() []features.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

// hanging is an admission that holds requests back until it is closed, and does not listen to the
// context.
type hanging chan struct{}

// Admit implements extproc.Admission.
func (h hanging) Admit(context.Context, *request.Request, int) error {
	<-h
	return nil
}

func newSite(t *testing.T) *site {
	t.Helper()
	envoy := binary(t)
	s := &site{t: t, fleet: new(fleet.Fleet), policy: new(inOrder), hang: make(hanging), ports: map[string]string{}}
	nobody, err := loopback.Free(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s.closed = nobody[0]
	var eps []*fleet.Endpoint
	for i := range 3 {
		u := newUpstream(t)
		s.ups = append(s.ups, u)
		eps = append(eps, &fleet.Endpoint{Name: fmt.Sprintf("u%d", i+1), Addr: netip.MustParseAddrPort(u.addr), Model: "demo", TP: 1})
	}
	eps = append(eps, &fleet.Endpoint{Name: "closed", Addr: netip.MustParseAddrPort(s.closed), Model: "demo", TP: 1})
	if _, err := s.fleet.Sync(time.Now(), eps); err != nil {
		t.Fatal(err)
	}
	s.order(0, 1, 2)
	parser, err := request.NewParser(request.Config{Rewrite: map[string]string{"alias": "demo"}})
	if err != nil {
		t.Fatal(err)
	}
	options := extproc.Options{
		Router: router.New(router.Options{Fleet: s.fleet, Policy: s.policy, Observer: &s.seen}),
		Parser: parser,
		Answer: extproc.Answer{Endpoints: 3, DecisionHeader: true},
		Limits: extproc.Limits{Decision: time.Minute},
	}
	s.server = s.service(options)
	port := s.serve(s.server)
	options.Admission, options.Limits = s.hang, extproc.Limits{Decision: 300 * time.Millisecond, Queue: time.Nanosecond}
	s.start(envoy, port, s.serve(s.service(options)))
	return s
}

func (s *site) service(o extproc.Options) *extproc.Server {
	s.t.Helper()
	server, err := extproc.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	server.SetReady(true)
	return server
}

// serve runs a service until the test ends and returns its port.
func (s *site) serve(server *extproc.Server) int {
	s.t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t := s.t
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return lis.Addr().(*net.TCPAddr).Port
}

// order tells the policy which upstreams to name, by number; -1 is the address of nobody.
func (s *site) order(ups ...int) {
	var addrs []string
	for _, i := range ups {
		if i < 0 {
			addrs = append(addrs, s.closed)
		} else {
			addrs = append(addrs, s.ups[i].addr)
		}
	}
	s.policy.set(addrs...)
}

// start runs Envoy on free ports until the test ends; epp and hung are the services' ports.
func (s *site) start(envoy string, epp, hung int) {
	t := s.t
	t.Helper()
	tmpl, err := template.ParseFiles("testdata/envoy.yaml.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := map[string]any{"Listeners": listeners, "EPP": epp, "Hung": hung, "Closed": netip.MustParseAddrPort(s.closed).Port()}
	var ports []uint16
	for _, u := range s.ups {
		ports = append(ports, netip.MustParseAddrPort(u.addr).Port())
	}
	data["Upstreams"] = append(ports, netip.MustParseAddrPort(s.closed).Port())
	config, admin := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	f, err := os.Create(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tmpl.Execute(f, data), f.Close()); err != nil {
		t.Fatal(err)
	}
	s.log = filepath.Join(dir, "envoy.log")
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(envoy, "-c", config, "--admin-address-path", admin, "--disable-hot-restart", "--concurrency", "1", "-l", "warning")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-exited
		log.Close()
		if t.Failed() {
			b, _ := os.ReadFile(s.log)
			t.Logf("Envoy:\n%s", b)
		}
	})
	for tries := 0; ; tries++ {
		select {
		case <-exited:
			b, _ := os.ReadFile(s.log)
			t.Fatalf("Envoy ended at once:\n%s", b)
		case <-time.After(50 * time.Millisecond):
		}
		if s.learn(admin) {
			return
		}
		if tries > 1200 {
			t.Fatal("Envoy does not come up")
		}
	}
}

// learn asks Envoy for its listeners; false: not up yet.
func (s *site) learn(admin string) bool {
	addr, err := os.ReadFile(admin)
	if err != nil {
		return false
	}
	resp, err := http.Get("http://" + string(addr) + "/listeners?format=json")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var list struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if json.NewDecoder(resp.Body).Decode(&list) != nil || len(list.Statuses) < len(listeners) {
		return false
	}
	for _, l := range list.Statuses {
		s.ports[l.Name] = fmt.Sprintf("%s:%d", l.Address.Socket.Address, l.Address.Socket.Port)
	}
	return s.healthy(string(addr))
}

// healthy reports whether Envoy has found the service, and found out about the dead one.
func (s *site) healthy(admin string) bool {
	resp, err := http.Get("http://" + admin + "/clusters")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return false
	}
	up, down := false, false
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "health_flags::") {
			up = up || strings.HasPrefix(line, "epp::") && strings.Contains(line, "::healthy")
			down = down || strings.HasPrefix(line, "checked::") && strings.Contains(line, "failed_active_hc")
		}
	}
	return up && down
}

// idle waits until nothing is in flight and returns the records of what ended.
func (s *site) idle(records int) []features.Observation {
	s.t.Helper()
	var list []features.Observation
	for range 1000 {
		list = append(list, s.seen.take()...)
		var snap fleet.Snapshot
		s.fleet.Snapshot(time.Now(), &snap)
		n := int32(0)
		for _, st := range snap.States {
			n += st.Requests
		}
		if n == 0 && len(list) >= records {
			if len(list) > records {
				s.t.Errorf("%d records, want %d", len(list), records)
			}
			return list
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("requests stay in flight; %d records, want %d", len(list), records)
	return nil
}
