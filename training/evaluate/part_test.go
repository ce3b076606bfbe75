package evaluate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "run,model,hardware,replicas,stack,offered_qps,req_id,session_id,turn,arrival_s,prompt_tokens,output_tokens," +
	"ttft_ms,tpot_ms,e2e_ms,queue_ms,inflight,inflight_prefill,status\n"

// line is one row of measured.csv.
func line(arrival, prompt, output, ttft, tpot, e2e, status string) string {
	return fmt.Sprintf("r,m,h,1,s,,,,,%s,%s,%s,%s,%s,%s,,,,%s\n", arrival, prompt, output, ttft, tpot, e2e, status)
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadRows: what cannot be a label is left out by reason, the rest is judged, and every figure of
// the result is one that JSON can hold.
func TestBadRows(t *testing.T) {
	good := line("1", "100", "11", "50", "10", "150", "ok")
	for _, c := range []struct {
		name, row, reason string
	}{
		{"NaN", line("2", "100", "11", "nan", "10", "150", "ok"), "not finite"},
		{"infinite", line("2", "100", "11", "inf", "10", "150", "ok"), "not finite"},
		{"negative", line("2", "100", "11", "-5", "10", "150", "ok"), "negative"},
		{"zero", line("2", "100", "11", "0", "10", "150", "ok"), "time not between 0 and a day"},
		{"zero end", line("2", "100", "11", "", "10", "0", "ok"), "time not between 0 and a day"},
		{"days", line("2", "100", "11", "90000000", "10", "90000100", "ok"), "time not between 0 and a day"},
		{"failed", line("2", "100", "11", "50", "10", "150", "error:500"), "not completed"},
		{"suspect", line("2", "100", "11", "50", "10", "150", "suspect"), "not completed"},
		{"first token after the end", line("2", "100", "11", "500", "10", "150", "ok"), "not completed"},
		{"seconds as milliseconds", line("2", "100", "11", "50", "10", "0.15", "ok"), "not completed"},
		{"gap in microseconds", line("2", "100", "11", "50", "10000", "150", "ok"), "times contradict each other"},
		{"gap in seconds", line("2", "100", "1001", "50", "0.01", "10050", "ok"), "times contradict each other"},
		{"no label", line("2", "100", "11", "", "", "150", "ok"), "no TTFT and no ITL"},
		{"one token, no first", line("2", "100", "1", "", "10", "150", "ok"), "no TTFT and no ITL"},
		{"no arrival", line("", "100", "11", "50", "10", "150", "ok"), "no arrival time"},
		{"no end", line("2", "100", "", "50", "", "", "ok"), "no end time"},
		{"no end, no length", line("2", "100", "", "50", "10", "", "ok"), "no end time"},
		{"no prompt", line("2", "", "11", "50", "10", "150", "ok"), "no prompt length"},
		{"empty prompt", line("2", "0", "11", "50", "10", "150", "ok"), "no prompt length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, err := Load(file(t, "measured.csv", head+strings.Repeat(good, 30)+c.row))
			if err != nil {
				t.Fatal(err)
			}
			f, err := parts[0].Judge(t.Context(), Options{Foils: true})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(map[string]int{c.reason: 1}, f.Dropped); d != "" || f.Kept != 30 || f.Rows != 31 {
				t.Errorf("%d of %d kept; dropped (-want +got):\n%s", f.Kept, f.Rows, d)
			}
			if _, err := json.Marshal(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// An answer of one token has no gap: its TTFT counts, its ITL does not.
func TestOneTokenAnswers(t *testing.T) {
	parts, err := Load(file(t, "measured.csv", head+strings.Repeat(line("1", "100", "1", "50", "3", "50", "ok"), 9)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := parts[0].Judge(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Targets["itl"]; ok || f.Targets["ttft"].N != 6 {
		t.Errorf("targets %+v", f.Targets)
	}
}

// A row that cannot be judged still weighs on its endpoint for as long as it ran.
func TestFailedRequestsWeigh(t *testing.T) {
	parts, err := Load(file(t, "measured.csv", head+line("0", "100", "11", "9000", "10", "9900", "suspect")+line("1", "100", "11", "50", "10", "150", "ok")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := parts[0].course()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.examples) != 1 || c.examples[0].inflight != 1 {
		t.Errorf("%d examples, the first with %v in flight", len(c.examples), c.examples[0].inflight)
	}
}

// What no learner can be judged on is refused with the file's name, the reason and what to do.
func TestRefusedFiles(t *testing.T) {
	var cut bytes.Buffer
	z := gzip.NewWriter(&cut)
	if _, err := z.Write([]byte(head + strings.Repeat(line("1", "100", "11", "50", "10", "150", "ok"), 2000))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"cut.csv.gz", cut.String()[:cut.Len()-20], "unexpected EOF"},
		{"empty.csv", "", "empty"},
		{"head.csv", head, "no rows"},
		{"trace.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4808,10\n", "no usable row among 1 (no TTFT and no ITL 1)"},
		{"failed.csv", head + line("1", "1", "2", "1", "1", "2", "error:503") + line("1", "1", "x", "1", "1", "2", "ok"), "among 2 (not an integer 1, not completed 1)"},
		{"steps.csv", "hello,world\n1,2\n", "steps.csv: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.name, c.text)
			parts, err := Load(path)
			if err == nil || parts != nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d parts, error %v, want %q", len(parts), err, c.want)
			}
		})
	}
}
