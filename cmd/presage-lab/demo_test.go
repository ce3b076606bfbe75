package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
)

// output is where a command under test writes; it may be read meanwhile.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// lab runs a command line in this process.
func lab(ctx context.Context, args ...string) (code int, out, notes *output) {
	out, notes = new(output), new(output)
	t := terminal.New(os.Stdout, os.Stderr, func(string) string { return "" })
	t.Out, t.Err = out, notes
	return run(ctx, args, t), out, notes
}

// result is the last line of a command's output.
func result(t *testing.T, out *output) demoJSON {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r demoJSON
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func (r demoJSON) check(t *testing.T, policies ...string) {
	t.Helper()
	if r.Requests == 0 || r.OK != r.Requests || r.Failed != 0 || len(r.Policies) != len(policies) {
		t.Errorf("%d requests, %d ok, %d failed, %d policies", r.Requests, r.OK, r.Failed, len(r.Policies))
	}
	first := r.Policies[policies[0]].Requests
	for _, name := range policies {
		s := r.Policies[name]
		if s.Requests != first || s.TTFTP50 == nil || *s.TTFTP50 <= 0 || *s.TTFTP90 < *s.TTFTP50 || s.ITLP50 == nil || s.HitRatio == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The demo of the README, short: every request is answered, the same ones for each policy, and
// routing by prefix finds more of them cached than rotation.
func TestDemo(t *testing.T) {
	t.Parallel()
	code, out, notes := lab(t.Context(), "demo", "--duration", "3s", "--policies", "round-robin,weighted", "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, notes)
	}
	r := result(t, out)
	r.check(t, "round-robin", "weighted")
	if rr, w := *r.Policies["round-robin"].HitRatio, *r.Policies["weighted"].HitRatio; w <= rr {
		t.Errorf("hit ratio: weighted %.2f, round-robin %.2f", w, rr)
	}
	for _, want := range []string{
		"engines    4 emulated (2 H100, 2 A100), llama-3.1-8b", "service    presage on 127.0.0.1:", "gateway    built in, speaks ext_proc", "same arrivals",
	} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("no %q in the notes:\n%s", want, notes)
		}
	}
	if !regexp.MustCompile(`(?m)^POLICY       REQUESTS  TTFT p50       p90   ITL p50   GOODPUT  IN SLO  CACHED\nround-robin +\d+ `).MatchString(out.String()) {
		t.Errorf("the table is not as specified:\n%s", out)
	}
}

// With a real Envoy, for both ways of taking the destination.
func TestDemoBehindEnvoy(t *testing.T) {
	t.Parallel()
	envoy := envoyPath(t)
	for _, destination := range []string{"override-host", "original-dst"} {
		t.Run(destination, func(t *testing.T) {
			t.Parallel()
			code, out, notes := lab(t.Context(), "demo", "--duration", "2s", "--policies", "weighted", "--envoy", envoy, "--destination", destination, "--json")
			if code != 0 {
				t.Fatalf("exit %d: %s", code, notes)
			}
			result(t, out).check(t, "weighted")
		})
	}
}

// A program that is no Envoy is reported with what it said.
func TestDemoWithoutAnEnvoy(t *testing.T) {
	t.Parallel()
	fake := filepath.Join(t.TempDir(), "envoy")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho no such option >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, notes := lab(t.Context(), "demo", "--duration", "1s", "--envoy", fake)
	if code != command.ExitFailed || !strings.Contains(notes.String(), "envoy: ended by itself (exit status 3): no such option") {
		t.Errorf("exit %d: %s", code, notes)
	}
}

// A trace with shared blocks, fast forward: lengths and hits as in the file.
func TestDemoReplay(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 16 { // every prompt is 1,200 tokens, 1,024 of them shared by all
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 1200, "output_length": 3, "hash_ids": [1, 2, %d]}`+"\n", i*1000, 10+i)
	}
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, notes := lab(t.Context(), "demo", "--trace", file, "--window", "1m", "--speed", "10", "--policies", "round-robin", "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, notes)
	}
	r := result(t, out)
	r.check(t, "round-robin")
	// Each of the eight engines computes the shared blocks once.
	if got, want := *r.Policies["round-robin"].HitRatio, float64(8*1024)/(16*1200); r.Requests != 16 || got != want {
		t.Errorf("%d requests, hit ratio %.4f; want 16, %.4f", r.Requests, got, want)
	}
}

// An interrupt ends the demo with what is finished, and the exit status of an interrupt.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, notes := new(output), new(output)
	term := terminal.New(os.Stdout, os.Stderr, func(string) string { return "" })
	term.Out, term.Err = writerFunc(func(p []byte) (int, error) {
		if bytes.HasPrefix(p, []byte("random")) { // the first row is out
			cancel()
		}
		return out.Write(p)
	}), notes
	code := run(ctx, []string{"demo", "--duration", "1s", "--policies", "random,p2c", "--json"}, term)
	if code != command.ExitInterrupted || !strings.Contains(notes.String(), "interrupted: 1 of 2 policies finished") {
		t.Errorf("exit %d: %s", code, notes)
	}
	if r := result(t, out); len(r.Policies) != 1 || r.Policies["random"].Requests == 0 {
		t.Errorf("result %s", out)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// An emulated engine answers until it is interrupted.
func TestEmulate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	notes := new(output)
	term := terminal.New(os.Stdout, os.Stderr, func(string) string { return "" })
	term.Out = io.Discard
	ready := make(chan string, 2)
	term.Err = writerFunc(func(p []byte) (int, error) {
		if m := regexp.MustCompile(`on (http://\S+),`).FindSubmatch(p); m != nil {
			ready <- string(m[1])
		}
		return notes.Write(p)
	})
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"emulate", "--gpu", "h100", "--model", "llama-3.1-8b", "--port", "0", "--dialect", "sglang", "--dp", "2"}, term)
	}()
	for rank := range 2 {
		var url string
		select {
		case url = <-ready:
		case code := <-done:
			t.Fatalf("exit %d: %s", code, notes)
		}
		label := `sglang:num_running_reqs{engine_type`
		if rank > 0 {
			label = `sglang:num_running_reqs{dp_rank="1"`
		}
		for path, want := range map[string]string{"/v1/models": "llama-3.1-8b", "/metrics": label} {
			resp, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.Contains(string(b), want) {
				t.Errorf("rank %d%s: no %s in %.200s", rank, path, want, b)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-done; code != command.ExitInterrupted {
		t.Errorf("exit %d: %s", code, notes)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for name := range examples {
		if name == "" {
			continue
		}
		code, out, _ := lab(t.Context(), append(strings.Fields(name), "--help")...)
		lines := strings.Split(out.String(), "\n")
		if code != 0 || lines[0] != "Example: "+examples[name] || len(lines) > 41 {
			t.Errorf("%s: exit %d, %d lines, first %q", name, code, len(lines), lines[0])
		}
		if slices.ContainsFunc(lines, func(l string) bool { return len(l) > 80 }) {
			t.Errorf("%s: lines are longer than a terminal:\n%s", name, out)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 12: "12", 999: "999", 1310: "1,310", 1234567: "1,234,567", -1310: "-1,310", -131: "-131"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
