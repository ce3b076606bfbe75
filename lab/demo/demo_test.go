package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Equal seeds make equal workloads, and a longer one begins as the shorter.
func TestBundledIsAFunctionOfTheSeed(t *testing.T) {
	a, b := Bundled(20*time.Second, 7), Bundled(20*time.Second, 7)
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	if long := Bundled(time.Minute, 7); !cmp.Equal(a.Jobs, long.Jobs[:len(a.Jobs)]) {
		t.Error("a longer workload begins otherwise")
	}
	if cmp.Equal(a.Jobs, Bundled(20*time.Second, 8).Jobs) {
		t.Error("another seed, the same workload")
	}
}

// What the bundled workload promises: enough requests, sorted, each prefix 8 % of an engine's KV.
func TestBundledShape(t *testing.T) {
	w := Bundled(20*time.Second, 1)
	if len(w.Jobs) <= 200 {
		t.Errorf("%d requests in 20 s", len(w.Jobs))
	}
	if share := float64(prefixTokens) / float64((w.Blocks-1)*blockSize); math.Abs(share-0.08) > 0.001 {
		t.Errorf("a prefix is %.3f of an engine's KV", share)
	}
	seen := map[Part]int{}
	for i, j := range w.Jobs {
		if i > 0 && j.At < w.Jobs[i-1].At || j.At >= w.Duration || j.Output < 1 || !j.Chat {
			t.Fatalf("job %d: %+v", i, j)
		}
		seen[j.Parts[0]]++
	}
	most := 0
	for _, n := range seen {
		most = max(most, n)
	}
	if len(seen) < 50 || len(seen) > groups || most < 2*len(w.Jobs)/groups {
		t.Errorf("%d groups, the most popular with %d of %d requests", len(seen), most, len(w.Jobs))
	}
}

// The engine counts the tokens that a job says it has, and finds what two jobs share.
func TestEngineSeesTheJobsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, err := engine.Builtin()
		if err != nil {
			t.Fatal(err)
		}
		coefs, err := table.Find("H100", "llama-3.1-8b", 0, "")
		if err != nil {
			t.Fatal(err)
		}
		e, err := emulator.New(emulator.Config{Engine: engine.Config{Coefs: *coefs}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go e.Run(ctx)
		shared := []Part{{1, 512}, {2, 512}}
		for i, c := range []struct {
			job            Job
			prompt, cached int
		}{
			{Job{Parts: append(slices.Clone(shared), Part{3, 300}), Output: 5}, 1324, 0},
			{Job{Parts: append(slices.Clone(shared), Part{4, 512}), Output: 700}, 1536, 1024},
			{Job{Parts: append(slices.Clone(shared), Part{4, 100}), Output: 1}, 1124, 1120}, // cut short, still equal
			{Job{Chat: true, Parts: []Part{{1, 512}, {2, 512}}, Output: 3}, 1032, 0},
		} {
			path := "/v1/completions"
			if c.job.Chat {
				path = "/v1/chat/completions"
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(c.job.body("llama-3.1-8b")))))
			var o Outcome
			cl := &client{speed: 1}
			if err := cl.read(w.Body, &o, time.Now()); err != nil {
				t.Fatalf("job %d: %v", i, err)
			}
			if o.Prompt != c.prompt || o.Cached != c.cached || o.Output != c.job.Output {
				t.Errorf("job %d: %d prompt, %d cached, %d output tokens; want %d, %d, %d", i, o.Prompt, o.Cached, o.Output, c.prompt, c.cached, c.job.Output)
			}
		}
	})
}

func TestBodyIsJSON(t *testing.T) {
	for _, chat := range []bool{true, false} {
		j := Job{Chat: chat, Parts: []Part{{1, 3}, {2, 5}}, Output: 600}
		var b struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.Unmarshal(j.body("m"), &b); err != nil || b.MaxTokens < j.Output {
			t.Errorf("%v, %+v: %s", err, b, j.body("m"))
		}
	}
}

func trace(t *testing.T, name, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReplayAzure(t *testing.T) {
	p := trace(t, "azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.68,396,109\n2023-11-16 18:25:50.68,5,6\n")
	w, err := Replay(p, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Jobs) != 2 || w.Jobs[1].At != 4*time.Second || w.Jobs[1].Output != 109 || w.Jobs[1].Parts[0].Tokens != 396 || w.Duration != time.Minute {
		t.Errorf("%+v", w)
	}
	if w.Jobs[0].Parts[0].Seed == w.Jobs[1].Parts[0].Seed {
		t.Error("two rows share their text")
	}
}

func TestReplayMooncake(t *testing.T) {
	p := trace(t, "m.jsonl", `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 1000, "input_length": 1200, "output_length": 5, "hash_ids": [7, 8, 10]}
`)
	w, err := Replay(p, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a, b := w.Jobs[0].Parts, w.Jobs[1].Parts
	if len(a) != 3 || a[0] != b[0] || a[1] != b[1] || a[2].Seed == b[2].Seed || a[2].Tokens != 1100-1024 || b[2].Tokens != 1200-1024 {
		t.Errorf("parts %v and %v", a, b)
	}
}

// Input that cannot be replayed is refused with its place and what to do.
func TestReplayRefuses(t *testing.T) {
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,%s,44\n"
	for name, c := range map[string]struct{ file, content, want string }{
		"no rows":     {"a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "a.csv"},
		"no trace":    {"a.csv", "hello\n", "a.csv"},
		"huge prompt": {"a.csv", fmt.Sprintf(azure, "999999"), "999999 prompt"},
		"no prompt":   {"a.csv", fmt.Sprintf(azure, "0"), "a.csv"},
	} {
		_, err := Replay(trace(t, c.file, c.content), time.Minute)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a message with %q", name, err, c.want)
		}
	}
	if _, err := Replay(filepath.Join(t.TempDir(), "none.csv"), time.Minute); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestScore(t *testing.T) {
	slo := SLO{TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond}
	ms := time.Millisecond
	s := score([]Outcome{
		{TTFT: 50 * ms, ITL: 5 * ms, E2E: 100 * ms, Prompt: 100, Cached: 80, Output: 11},
		{TTFT: 150 * ms, ITL: 5 * ms, E2E: 200 * ms, Prompt: 100, Cached: 0, Output: 11},
		{TTFT: 50 * ms, ITL: 15 * ms, E2E: 300 * ms, Prompt: 200, Cached: 120, Output: 11},
		{TTFT: 100 * ms, E2E: 100 * ms, Prompt: 100, Cached: 50, Output: 1}, // one token has no gap
		{Err: errTruncated, TTFT: 1 * ms, Prompt: 1000, Cached: 1000},
	}, slo, 10*time.Second)
	want := Score{
		Requests: 5, OK: 4, TTFTP50: 0.075, TTFTP90: 0.135, TTFTP99: 0.1485, ITLP50: 0.005, E2EMean: 0.175,
		Goodput: 0.2, Attainment: 0.4, HitRatio: 0.5, TokensPerSecond: 3.4,
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if d := cmp.Diff(want, s, near); d != "" {
		t.Error(d)
	}
	if s := score(nil, slo, 0); s.Requests != 0 || !math.IsNaN(s.TTFTP50) || !math.IsNaN(s.Attainment) || s.Goodput != 0 {
		t.Errorf("of nothing: %+v", s)
	}
}

// Answers that are not complete are failures with a reason, not good figures.
func TestB17BrokenAnswersAreFailures(t *testing.T) {
	token := `data: {"choices":[{"text":"a"}]}` + "\n\n"
	for name, c := range map[string]struct{ body, want string }{
		"empty":        {"", "without [DONE]"},
		"truncated":    {token + token, "without [DONE]"},
		"error event":  {token + `data: {"error":{"message":"engine dead"}}` + "\n\n", "engine dead"},
		"not JSON":     {"data: x\n\n", "cannot parse"},
		"endless line": {"data: " + strings.Repeat("x", maxLine+10), "too long"},
		"html":         {"<html></html>\n", "without [DONE]"},
	} {
		var o Outcome
		if err := (&client{speed: 1}).read(strings.NewReader(c.body), &o, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Times are from when a request was due, on the engines' clock; comments are skipped, and a chunk
// with a role alone is no token.
func TestB14FirstChunkIsRoleOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			for i, line := range []string{
				": comment\n\n",
				`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n",
				`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n",
				`data: {"choices":[{"delta":{"content":"b"}}]}` + "\n\n",
				`data: {"choices":[{"delta":{"content":"c"}}]}` + "\n\n",
				`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\ndata: [DONE]\n\n",
			} {
				if i > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				_, _ = io.WriteString(w, line)
			}
			w.Close()
		}()
		var o Outcome
		due := time.Now().Add(-5 * time.Millisecond)
		if err := (&client{speed: 2}).read(r, &o, due); err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		if want := (Outcome{TTFT: 50 * ms, ITL: 20 * ms, E2E: 110 * ms, Prompt: 10, Cached: 4, Output: 3}); o != want {
			t.Errorf("got %+v, want %+v", o, want)
		}
	})
}

// What is read does not depend on how the stream was cut, nor on the line ends.
func TestB11StreamsInPieces(t *testing.T) {
	body := ": ping\n\n" + `data: {"choices":[{"text":"a"}]}` + "\n\n" + `data: {"choices":[{"text":"\u00e9\n"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	for _, text := range []string{body, strings.ReplaceAll(body, "\n", "\r\n")} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
		} {
			var o Outcome
			if err := (&client{speed: 1}).read(r, &o, time.Now()); err != nil || o.Prompt != 7 || o.Output != 2 || o.TTFT == 0 {
				t.Errorf("%s: %v, %+v", name, err, o)
			}
		}
	}
}

// Requests go out when they are due, whatever has become of the others.
func TestSendIsOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		sent := make(chan time.Duration, 10)
		c := &client{
			http: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				sent <- time.Since(began)
				<-r.Context().Done()
				return nil, r.Context().Err()
			})},
			url: "http://x", speed: 2,
		}
		w := &Workload{Duration: 10 * time.Second}
		for _, s := range []time.Duration{1, 1, 3, 9} {
			w.Jobs = append(w.Jobs, Job{At: s * time.Second, Parts: []Part{{1, 1}}, Output: 1})
		}
		var out tally
		send(t.Context(), c, w, 4*time.Second, &out) // 8 s on the engines' clock: the last is not sent
		close(sent)
		for d := range sent {
			at = append(at, d)
		}
		if want := []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond}; !slices.Equal(at, want) {
			t.Errorf("sent at %v, want %v", at, want)
		}
		if len(out.outcomes) != 3 || !errors.Is(out.outcomes[0].Err, context.Canceled) {
			t.Errorf("outcomes %v: what nobody answers must fail in the end", out.outcomes)
		}
		if took := time.Since(began); took != drainLimit+1500*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFailuresAreFewAndCounted(t *testing.T) {
	var o []Outcome
	for i := range 20 {
		o = append(o, Outcome{}, Outcome{Err: errors.New("same")}, Outcome{Err: fmt.Errorf("other %d", i)})
	}
	got := failures(o)
	if len(got) != 3 || got[0].Error() != "same (20 times)" || got[1].Error() != "other 0" {
		t.Errorf("failures %v", got)
	}
}

// The configuration names every address, and nothing else is left to fill in.
func TestEnvoyConfig(t *testing.T) {
	var eps []*fleet.Endpoint
	for _, a := range []string{"127.0.0.1:8101", "127.0.0.1:8102"} {
		eps = append(eps, &fleet.Endpoint{Addr: netip.MustParseAddrPort(a)})
	}
	file, err := writeEnvoyConfig(t.TempDir(), "127.0.0.1:8080", "127.0.0.1:9002", eps)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"8080", "9002", "8101", "8102"} {
		if n := strings.Count(string(b), "port_value: "+port+"}"); n != 1 {
			t.Errorf("port %s is there %d times", port, n)
		}
	}
	if strings.Contains(string(b), "{{") || strings.Contains(string(b), "no value") {
		t.Error("the template is not filled in")
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var v tail
	for i := range 1000 {
		fmt.Fprintf(&v, "line %d\n", i)
	}
	if v.last() != "line 999" || len(v.buf) > tailSize {
		t.Errorf("last %q, %d bytes", v.last(), len(v.buf))
	}
	if (&tail{}).last() != "" {
		t.Error("of nothing")
	}
}
