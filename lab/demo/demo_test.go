package demo

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/load"
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
	seen := map[load.Part]int{}
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
