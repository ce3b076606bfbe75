package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// switchback writes the log of blocks of five minutes, in which every so manieth request misses its SLO.
func switchback(t *testing.T, path string, blocks int, missed map[string]int) string {
	t.Helper()
	w, err := observations.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	for k := range blocks {
		arm := []string{"weighted", "predictive", "predictive", "weighted"}[k%4]
		for i := range 60 {
			n++
			o := features.Observation{
				ID: fmt.Sprintf("d-%d", n), At: begin.Add(time.Duration(k)*5*time.Minute + time.Duration(i)*5*time.Second), API: request.Chat, Model: "m", Stream: true,
				SLO: request.SLO{TTFT: time.Second}, Endpoint: "e0", Picked: "e0", Policy: arm, Arm: arm, Propensity: 1, PromptTokens: 500 + n*7919%100,
				CachedTokens: 100, OutputTokens: 20, TTFT: 80 * time.Millisecond, ITL: 10 * time.Millisecond, E2E: time.Second, Cause: fleet.Complete, Status: 200, Said: features.Nothing(),
			}
			if i < 6 {
				o.Arm = ""
			}
			if n*7919%97%missed[arm] == 0 {
				o.TTFT = 2 * time.Second
			}
			if err := w.Write(&o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

func runAB(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), append([]string{"ab"}, args...), &terminal.Terminal{Out: &out, Err: &err, Width: 80})
	return code, out.String(), err.String()
}

// TestAB reads a switchback that decides, and one that is too short to.
func TestAB(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "ab.html")
	log := switchback(t, filepath.Join(dir, "log.jsonl"), 48, map[string]int{"weighted": 4, "predictive": 20})
	code, stdout, stderr := runAB(t, log, "--json", "--report", page)
	if code != 0 {
		t.Fatal(code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var got struct {
		Arms    map[string]struct{ Requests int }
		Control string
		Paired  []struct {
			A, B, Metric string
			Diff         float64
			CI95         [2]*float64
		}
		Verdict []struct{ Kind string }
		Refused []struct{ What, Why string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Arms) != 2 || got.Control != "weighted" || got.Paired[0].A != "predictive" || got.Paired[0].Metric != "slo_attainment" || got.Paired[0].CI95[0] == nil ||
		*got.Paired[0].CI95[0] <= 0 || got.Verdict[0].Kind != "switch" || len(got.Refused) == 0 {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"Switch to predictive: it carries", "weighted (control)", "ok A/A", "note     The log does not say how large the caches are"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "Switch to predictive") {
		t.Errorf("the page: %v", err)
	}
	short := switchback(t, filepath.Join(dir, "short.parquet"), 12, map[string]int{"weighted": 4, "predictive": 20})
	if code, stdout, stderr := runAB(t, short); code != 0 || !strings.Contains(stdout, "6 of 12 block pairs needed") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

// TestABRefuses: what cannot be read is a wrong command line, told with its place.
func TestABRefuses(t *testing.T) {
	dir := t.TempDir()
	log := switchback(t, filepath.Join(dir, "log.jsonl"), 4, map[string]int{"weighted": 4, "predictive": 20})
	for want, args := range map[string][]string{
		"none.jsonl: cannot be read":                             {filepath.Join(dir, "none.jsonl")},
		"log.jsonl too: the same requests would count twice":     {log, switchback(t, filepath.Join(dir, "again.jsonl"), 4, map[string]int{"weighted": 4, "predictive": 20})},
		`control: "wighted" is no arm of the log; nearest weigh`: {log, "--control", "wighted"},
		`unit: "blocks" unknown; nearest block`:                  {log, "--unit", "blocks"},
		"--report page.htm: no .html file":                       {log, "--report", "page.htm"},
	} {
		if code, _, stderr := runAB(t, args...); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d, %s; want %q", args, code, stderr, want)
		}
	}
}
