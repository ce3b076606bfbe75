package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
)

// loaded runs the command against a server and returns what it counted.
func loaded(t *testing.T, h http.Handler, want int, args ...string) (loadJSON, *output) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	code, out, notes := lab(t.Context(), append([]string{"load", "--target", s.URL, "--model", "llama-3.1-8b", "--json"}, args...)...)
	if code != want {
		t.Fatalf("exit %d, want %d: %s", code, want, notes)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r loadJSON
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r, notes
}

// The load against an emulated engine: all answered, prefixes found cached, the warm-up left out.
func TestLoad(t *testing.T) {
	t.Parallel()
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
	args := []string{"--engine", "emulated", "--duration", "2s", "--rate", "30", "--groups", "2", "--output", "4"}
	all, _ := loaded(t, e, 0, args...)
	if all.Requests < 30 || all.OK != all.Requests || all.Failed != 0 || *all.HitRatio < .5 || *all.TTFTMean <= 0 || *all.ITLP90 <= 0 {
		t.Errorf("%+v", all)
	}
	if part, _ := loaded(t, e, 0, append(args, "--warmup", "1s")...); part.Requests == 0 || part.Requests >= all.Requests {
		t.Errorf("%d requests after the warm-up, %d without one", part.Requests, all.Requests)
	}
}

// Where nothing is answered the figures say so, and the command fails.
func TestB17LoadWithoutAnswers(t *testing.T) {
	t.Parallel()
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no engine", http.StatusServiceUnavailable)
	})
	r, notes := loaded(t, broken, 1, "--duration", "300ms", "--rate", "50")
	if r.Requests == 0 || r.OK != 0 || r.Failed != r.Requests || r.Attainment == nil || *r.Attainment != 0 || r.TTFTP50 != nil {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(notes.String(), "status 503: no engine") || !strings.Contains(notes.String(), "no request was answered") {
		t.Errorf("notes: %s", notes)
	}
}

// Wrong flags are refused with what to write.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--target ftp://x: no URL":       {"--target", "ftp://x"},
		"--rate 0":                       {"--rate", "0"},
		"--rate NaN":                     {"--rate", "NaN"},
		"--warmup 30s: not within":       {"--warmup", "30s"},
		"--prefix 9-3: no range":         {"--prefix", "9-3"},
		"--output many: no range":        {"--output", "many"},
		"--question 0-9: no range":       {"--question", "0-9"},
		"--groups 0: not from":           {"--groups", "0"},
		"--most 0: not from":             {"--most", "0"},
		"--slo-ttft -1s":                 {"--slo-ttft=-1s"},
		"--duration 0s: not between":     {"--duration", "0s"},
		"--prefix 1-9999999999999999999": {"--prefix", "1-9999999999999999999"},
	} {
		if code, _, notes := lab(t.Context(), append([]string{"load", "--model", "m"}, args...)...); code != 2 || !strings.Contains(notes.String(), want) {
			t.Errorf("%v: exit %d, %s, want %q", args, code, notes, want)
		}
	}
}
