package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
			e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(c.job.body("llama-3.1-8b", Emulated)))))
			var o Outcome
			cl := &Client{Speed: 1}
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
	for _, kind := range []Kind{Emulated, Real} {
		for _, chat := range []bool{true, false} {
			j := Job{Chat: chat, Parts: []Part{{1, 3}, {2, 5}}, Output: 600}
			var b struct {
				MaxTokens int  `json:"max_tokens"`
				IgnoreEOS bool `json:"ignore_eos"`
			}
			body := j.body("m", kind)
			if err := json.Unmarshal(body, &b); err != nil || b.MaxTokens < j.Output {
				t.Errorf("%v, %+v: %s", err, b, body)
			}
			if exact := b.MaxTokens == j.Output && b.IgnoreEOS; exact != (kind == Real) {
				t.Errorf("kind %d: an answer of exactly its length %v: %s", kind, exact, body)
			}
		}
	}
}

func TestScore(t *testing.T) {
	slo := SLO{TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond}
	ms := time.Millisecond
	s := Sum([]Outcome{
		{TTFT: 50 * ms, ITL: 5 * ms, E2E: 100 * ms, Prompt: 100, Cached: 80, Output: 11},
		{TTFT: 150 * ms, ITL: 5 * ms, E2E: 200 * ms, Prompt: 100, Cached: 0, Output: 11},
		{TTFT: 50 * ms, ITL: 15 * ms, E2E: 300 * ms, Prompt: 200, Cached: 120, Output: 11},
		{TTFT: 100 * ms, E2E: 100 * ms, Prompt: 100, Cached: 50, Output: 1}, // one token has no gap
		{Err: errTruncated, TTFT: 1 * ms, Prompt: 1000, Cached: 1000},
	}, slo, 10*time.Second)
	want := Score{
		Requests: 5, OK: 4, TTFTMean: 0.0875, TTFTP50: 0.075, TTFTP90: 0.135, TTFTP99: 0.1485, ITLP50: 0.005, ITLP90: 0.013, E2EMean: 0.175,
		Goodput: 0.2, Attainment: 0.4, HitRatio: 0.5, TokensPerSecond: 3.4,
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if d := cmp.Diff(want, s, near); d != "" {
		t.Error(d)
	}
	if s := Sum(nil, slo, 0); s.Requests != 0 || !math.IsNaN(s.TTFTP50) || !math.IsNaN(s.Attainment) || s.Goodput != 0 {
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
		if err := (&Client{Speed: 1}).read(strings.NewReader(c.body), &o, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
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
		if err := (&Client{Speed: 2}).read(r, &o, due); err != nil {
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
			if err := (&Client{Speed: 1}).read(r, &o, time.Now()); err != nil || o.Prompt != 7 || o.Output != 2 || o.TTFT == 0 {
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
		c := &Client{
			http: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				sent <- time.Since(began)
				<-r.Context().Done()
				return nil, r.Context().Err()
			})},
			Target: "http://x", Speed: 2,
		}
		w := &Workload{Duration: 10 * time.Second}
		for _, s := range []time.Duration{1, 1, 3, 9} {
			w.Jobs = append(w.Jobs, Job{At: s * time.Second, Parts: []Part{{1, 1}}, Output: 1})
		}
		var out Tally
		c.Send(t.Context(), w, 4*time.Second, &out) // 8 s on the engines' clock: the last is not sent
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
	got := Failures(o)
	if len(got) != 3 || got[0].Error() != "same (20 times)" || got[1].Error() != "other 0" {
		t.Errorf("failures %v", got)
	}
}

// A workload is a function of its seed; its text alone may change; a longer one begins as the shorter.
func TestGroupedIsAFunctionOfItsSeeds(t *testing.T) {
	g := Grouped{
		Groups: 14, Prefix: Range{512, 1536}, Question: Range{16, 64}, Output: Range{8, 32},
		Rate: 22, Duration: time.Minute, Seed: 3, Text: 1,
	}
	a := g.Workload()
	if d := cmp.Diff(a, g.Workload()); d != "" {
		t.Error(d)
	}
	if n := len(a.Jobs); n < 22*60-5*37 || n > 22*60+5*37 {
		t.Errorf("%d requests in a minute at 22 a second", n)
	}
	longer, text, seed := g, g, g
	longer.Duration, text.Text, seed.Seed = 2*time.Minute, 2, 4
	if long := longer.Workload(); !cmp.Equal(a.Jobs, long.Jobs[:len(a.Jobs)]) {
		t.Error("a longer workload begins otherwise")
	}
	if cmp.Equal(a.Jobs, seed.Workload().Jobs) {
		t.Error("another seed, the same workload")
	}
	other := text.Workload()
	groups := map[Part]bool{}
	for i, j := range other.Jobs {
		b := a.Jobs[i]
		for k := range j.Parts {
			if j.Parts[k].Seed == b.Parts[k].Seed || j.Parts[k].Tokens != b.Parts[k].Tokens {
				t.Fatalf("job %d: parts %v and %v: want other texts of the same lengths", i, j.Parts, b.Parts)
			}
		}
		if j.At != b.At || j.Output != b.Output {
			t.Fatalf("job %d: another text moved it", i)
		}
		groups[j.Parts[0]] = true
		if p := j.Parts[0].Tokens; p < 512 || p > 1536 || j.Parts[1].Tokens < 16 || j.Parts[1].Tokens > 64 || j.Output < 8 || j.Output > 32 {
			t.Fatalf("job %d: %+v", i, j)
		}
	}
	if len(groups) != g.Groups {
		t.Errorf("%d prefixes, want %d", len(groups), g.Groups)
	}
}

// A request that is due while as many are open as may be counts as failed, and the next ones go out
// when they are due all the same.
func TestCrowdedRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{
			http: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				time.Sleep(2500 * time.Millisecond)
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(
					`data: {"choices":[{"text":"a"}],"usage":{"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"))}, nil
			})},
			Target: "http://x", Speed: 1, Most: 2,
		}
		w := &Workload{Duration: 10 * time.Second}
		for i := range 5 {
			w.Jobs = append(w.Jobs, Job{At: time.Duration(i) * time.Second, Parts: []Part{{1, 1}}, Output: 1})
		}
		var tally Tally
		c.Send(t.Context(), w, w.Duration, &tally)
		failed := map[time.Duration]error{}
		for _, o := range tally.Outcomes() {
			failed[o.At] = o.Err
		}
		for i := range 5 {
			want := error(nil)
			if i == 2 { // the first two are still open
				want = ErrCrowded
			}
			if err := failed[time.Duration(i)*time.Second]; !errors.Is(err, want) {
				t.Errorf("request %d: %v, want %v", i, err, want)
			}
		}
		if s := tally.SoFar(SLO{TTFT: time.Minute, ITL: time.Minute}, w.Duration); s.Requests != 5 || s.OK != 4 || s.Attainment != .8 {
			t.Errorf("score %+v: what was not sent has missed its SLO", s)
		}
	})
}

// Text for real engines is one common word a token, and needs no escape.
func TestWordsAreOneATokenAndPlain(t *testing.T) {
	a := string(Part{Seed: 5, Tokens: 300}.words(nil))
	if n := len(strings.Fields(a)); n != 300 || strings.ContainsAny(a, "\"\\\n") {
		t.Errorf("%d words: %q", n, a)
	}
	if b := string(Part{Seed: 5, Tokens: 200}.words(nil)); !strings.HasPrefix(a, b) {
		t.Error("a part cut short begins otherwise")
	}
}
