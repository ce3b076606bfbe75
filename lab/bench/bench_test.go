package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router/baseline"

	"github.com/presage-router/presage/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPromptsAreDifferent: bodies are JSON of the size asked for, marked ones are equal to none before, and
// the first half stays as it was.
func TestPromptsAreDifferent(t *testing.T) {
	for _, size := range []int{256, 2048, 22_000} {
		p := newPrompts(size, rand.New(rand.NewPCG(1, 2)))
		seen := map[string]bool{}
		for n := range uint64(3 * sharedBeginnings) {
			i := int(n) % len(p.bodies)
			half := string(p.bodies[i][:p.marks[i]])
			p.mark(i, n)
			body := p.bodies[i]
			if len(body) != size || !json.Valid(body) || seen[string(body)] || string(body[:p.marks[i]]) != half {
				t.Fatalf("size %d, prompt %d: %d bytes, valid %t, seen %t", size, n, len(body), json.Valid(body), seen[string(body)])
			}
			seen[string(body)] = true
		}
	}
	if !json.Valid(completion(2048)) {
		t.Error("the answer is no JSON")
	}
}

func TestDecide(t *testing.T) {
	for _, n := range []int{1, 5, 40} {
		policy, err := baseline.Policies().New("weighted", router.Params{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&Decide{Endpoints: n, Policy: policy, Duration: 20 * time.Millisecond}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Endpoints != n || r.Decisions < batch || !(r.P50 > 0 && r.P99 >= r.P50) || r.Allocs > 0.1 {
			t.Errorf("%+v", r)
		}
	}
}

type fakeService struct {
	fleet   fleet.Fleet
	stopped bool
}

func (s *fakeService) ExtProc() string     { return "127.0.0.1:1" }
func (s *fakeService) Fleet() *fleet.Fleet { return &s.fleet }
func (s *fakeService) Stop() error         { s.stopped = true; return nil }

// TestAttend: the child starts what it is told, answers every line with its account, and stops with its parent.
func TestAttend(t *testing.T) {
	s := &fakeService{}
	change, err := s.fleet.Sync(time.Now(), []*fleet.Endpoint{{Name: "a", Addr: netip.MustParseAddrPort("10.0.0.1:8000"), TP: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.fleet.Begin(time.Now(), change.Added[0], fleet.Work{Prompt: 10}); !ok {
		t.Fatal("no reservation")
	}
	var got Settings
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Attend(in, out, func(set Settings) (Service, error) { got = set; return s, nil })
	}()
	lines := bufio.NewScanner(answers)
	for _, line := range []string{`{"policy":"p2c","endpoints":[{"name":"a","addr":"10.0.0.1:8000"}]}`, ""} {
		if _, err := io.WriteString(ask, line+"\n"); err != nil {
			t.Fatal(err)
		}
		var r Report
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &r) != nil || r.ExtProc != "127.0.0.1:1" || r.Inflight != 1 || r.Goroutines < 2 || r.CPU <= 0 {
			t.Errorf("report %s: %+v", lines.Text(), r)
		}
	}
	_ = ask.Close()
	if err := <-done; err != nil || !s.stopped || got.Policy != "p2c" || len(got.Endpoints) != 1 {
		t.Errorf("%v, stopped %t, settings %+v", err, s.stopped, got)
	}
	failed := errors.New("no such policy")
	for in, want := range map[string]string{"": "no settings", "{": "cannot parse the settings", "{}": "no such policy"} {
		if err := Attend(strings.NewReader(in), io.Discard, func(Settings) (Service, error) { return nil, failed }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestSoakersCount: clients that stay count as answered or failed, those that leave as aborted.
func TestSoakersCount(t *testing.T) {
	for _, c := range []struct {
		name            string
		answer          http.HandlerFunc
		leave           int
		aborted, failed bool
	}{
		{"complete", stream, 0, false, false},
		{"leaves", stream, 3, true, false},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, 0, false, true},
		{"cut", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: {}\n\n") }, 0, false, true},
		{"cut before it leaves", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: {}\n\n") }, 2, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.answer)
			defer srv.Close()
			s := &soakers{url: srv.URL}
			aborted, err := s.request(context.Background(), srv.Client(), "hello", c.leave)
			s.count(aborted, err)
			if aborted != c.aborted || (err != nil) != c.failed || s.requests != 1 || (s.failed == 1) != c.failed || (s.aborted == 1) != c.aborted {
				t.Errorf("aborted %t, error %v, counted %+v", aborted, err, s)
			}
			srv.Client().CloseIdleConnections()
		})
	}
}

// TestPromises: what a soak must find, it finds.
func TestPromises(t *testing.T) {
	good := SoakResult{Requests: 10, Aborted: 2, GoroutinesStart: 50, GoroutinesEnd: 50 + goroutineSlack}
	if err := good.check(nil); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*SoakResult){
		"left in the ledger":  func(r *SoakResult) { r.InflightEnd = 1 },
		"goroutines are left": func(r *SoakResult) { r.GoroutinesEnd++ },
		"requests failed":     func(r *SoakResult) { r.Failed = 1 },
		"no request ended":    func(r *SoakResult) { r.Requests = 0 },
	} {
		r := good
		spoil(&r)
		if err := r.check(io.EOF); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestEnginePage: the page is that of a busy engine, and no two readings are equal.
func TestEnginePage(t *testing.T) {
	e, err := startEngines(t.Context(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.stop()
	var last string
	for range 2 {
		resp, err := http.Get("http://" + e.list[1].Addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		text := string(b)
		if err != nil || !strings.Contains(text, `vllm:num_requests_running{engine="0",model_name="tiny"} 4.0`) || text == last || len(text) < len(page) {
			t.Fatalf("%v, %d bytes", err, len(text))
		}
		last = text
	}
	http.DefaultClient.CloseIdleConnections()
}
