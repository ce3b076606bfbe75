package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/presage-router/presage/cmd/internal/config"
)

// start writes a configuration and an endpoints file, loads them as the command does, and runs them.
func startFromFiles(t *testing.T, text string, engines ...*engine) (l *lab, path string, level *slog.LevelVar) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "presage.yaml")
	write(t, filepath.Join(dir, "endpoints.yaml"), endpointsFile(engines...))
	write(t, path, head+text)
	c, _, err := config.Load(path, Policies().Names())
	if err != nil {
		t.Fatal(err)
	}
	level = new(slog.LevelVar)
	return newLab(t, c, Deps{Path: path, Level: level}), path, level
}

const head = "listen: {extproc: \"127.0.0.1:0\", health: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\nfleet: {endpoints: {file: endpoints.yaml}}\n"

func endpointsFile(engines ...*engine) string {
	var b strings.Builder
	b.WriteString("endpoints:")
	if len(engines) == 0 {
		b.WriteString(" []")
	}
	for _, e := range engines {
		fmt.Fprintf(&b, "\n- {name: %s, address: %s, ports: [%d], model: demo, engine: vllm}", e.name, e.addr().Addr(), e.addr().Port())
	}
	b.WriteString("\n")
	return b.String()
}

// TestReload: what can change while serving is in force after a reload; a bad file changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	l, path, level := startFromFiles(t, "", newEngine(t, "e1"))
	reload := func(text string) error {
		t.Helper()
		write(t, path, head+text)
		return l.Reload()
	}
	if err := reload("policy: round-robin\nrequest: {unknown_model: 404, rewrite: {alias: demo}}\nanswer: {decision_header: true}\nlog: {level: debug}\ndrain: {timeout: 0s}\n"); err != nil {
		t.Fatal(err)
	}
	if got := l.router.Policy().Name(); got != "round-robin" || level.Level() != slog.LevelDebug {
		t.Errorf("policy %s, level %s", got, level)
	}
	ask := func(model string) reply {
		return l.send(context.Background(), "/v1/chat/completions", `{"model":"`+model+`","stream":true,"messages":[]}`)
	}
	if a := ask("alias"); a.status != http.StatusOK || a.header.Get("x-presage-decision") == "" {
		t.Errorf("%+v", a)
	}
	if a := ask("nobody"); a.status != http.StatusNotFound {
		t.Errorf("%+v", a)
	}
	policy := l.router.Policy()
	var ps config.Problems
	if err := reload("policy: nope\nslo: {ttft: 1}\n"); !errors.As(err, &ps) || len(ps) != 2 {
		t.Errorf("two faults gave %v", err)
	}
	for series, want := range map[string]string{
		"presage_config_generation":                                    "2",
		"presage_config_last_reload_successful":                        "0",
		`presage_policy_info{policy="round-robin"}`:                    "1",
		`presage_requests_total{model="nobody",outcome="bad_request"}`: "1",
	} {
		l.eventually(series, func() bool { return l.metric(series) == want })
	}
	if err := reload("policy: round-robin\nslo: {ttft: 2s}\ndrain: {timeout: 0s}\n"); err != nil {
		t.Fatal(err)
	}
	if l.router.Policy() != policy {
		t.Error("an unchanged policy lost its state")
	}
	if got := l.metric("presage_config_generation"); got != "3" {
		t.Errorf("generation %s", got)
	}
}

// TestReloadFollowsTheFile: a change of the file comes into force without being told.
func TestReloadFollowsTheFile(t *testing.T) {
	t.Parallel()
	l, path, _ := startFromFiles(t, "drain: {timeout: 0s}\n", newEngine(t, "e1"))
	write(t, path, head+"policy: p2c\ndrain: {timeout: 0s}\n")
	l.eventually("the new policy", func() bool { return l.router.Policy().Name() == "p2c" })
	write(t, path, "nonsense")
	l.eventually("the refusal", func() bool { return l.metric("presage_config_last_reload_successful") == "0" })
	if got := l.router.Policy().Name(); got != "p2c" {
		t.Errorf("policy %s", got)
	}
}

// TestB33ReloadDuringTraffic: no request is lost while configuration and endpoints change under it.
func TestB33ReloadDuringTraffic(t *testing.T) {
	t.Parallel()
	engines := []*engine{newEngine(t, "e1"), newEngine(t, "e2"), newEngine(t, "e3")}
	l, path, _ := startFromFiles(t, "drain: {timeout: 0s}\n", engines...)
	held := l.start("hold on")
	stop := l.traffic(8)
	file := filepath.Join(filepath.Dir(path), "endpoints.yaml")
	ready := func(n int) bool { return l.metric(`presage_endpoints{state="ready"}`) == strconv.Itoa(n) }
	for i, policy := range []string{"round-robin", "nope", "weighted", "p2c"} {
		write(t, path, head+"drain: {timeout: 0s}\npolicy: "+policy+"\n")
		if err := l.Reload(); (err != nil) != (policy == "nope") {
			t.Errorf("%s: %v", policy, err)
		}
		left := engines[:1+i%3]
		write(t, file, endpointsFile(left...))
		l.eventually("the endpoints of the file", func() bool { return ready(len(left)) })
	}
	write(t, file, endpointsFile(engines[2])) // the held answer's endpoint has been removed by now, or is added again
	l.eventually("the last endpoint", func() bool { return ready(1) })
	answers := stop()
	if len(answers) < 50 {
		t.Errorf("only %d requests", len(answers))
	}
	for i, a := range answers {
		if !a.complete() {
			t.Fatalf("request %d of %d: %+v", i, len(answers), a)
		}
	}
	l.eventually("one request in flight", func() bool { return l.inflight() == 1 })
	for _, e := range engines {
		close(e.release)
	}
	if a := <-held; !a.complete() {
		t.Errorf("the held answer: %+v", a)
	}
	l.settled()
	if st := l.index.Stats(); st.Endpoints > 1 {
		t.Errorf("the index still knows %d endpoints", st.Endpoints)
	}
}

// TestB41StartsBeforeEndpoints: an empty endpoints file is a start, not an error.
func TestB41StartsBeforeEndpoints(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "e1")
	l, path, _ := startFromFiles(t, "drain: {timeout: 0s}\n")
	if status, _ := l.admin("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("ready without endpoints: %d", status)
	}
	write(t, filepath.Join(filepath.Dir(path), "endpoints.yaml"), endpointsFile(e))
	l.eventually("readiness", func() bool { status, _ := l.admin("/readyz"); return status == http.StatusOK })
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Errorf("%+v", a)
	}
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	c := config.Default()
	c.Fleet.File = filepath.Join(dir, "endpoints.yaml")
	c.TLS = config.TLS{Mode: config.TLSFiles, Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem")}
	err := CheckFiles(c)
	if err == nil || !strings.Contains(err.Error(), "endpoints.yaml") || !strings.Contains(err.Error(), "c.pem") {
		t.Errorf("%v", err)
	}
	write(t, c.Fleet.File, endpointsFile())
	c.TLS = config.TLS{Mode: config.TLSSelfSigned}
	if err := CheckFiles(c); err != nil {
		t.Error(err)
	}
}

// TestAtNextStart: everything that is not followed is named, and nothing else.
func TestAtNextStart(t *testing.T) {
	was, next := config.Default(), config.Default()
	next.Policy, next.Drain.Timeout, next.SLO.TTFT = "p2c", 1, 1
	if keys := atNextStart(was, next); len(keys) != 0 {
		t.Errorf("%v", keys)
	}
	next.Listen.Admin, next.Admin.Hosts, next.Fleet.Scrape.Timeout, next.Request.MaxBody = "", []string{"x"}, 1, 1
	if got := strings.Join(atNextStart(was, next), " "); got != "listen admin fleet request.max_body" {
		t.Errorf("%s", got)
	}
}
