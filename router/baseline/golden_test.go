package baseline

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden decisions from what the policies do now")

const divider = "---\n"

// TestGoldenDecisions reads states and requests from testdata/*.txt and compares the decision, its
// sentence and its table of terms with what stands below the line.
func TestGoldenDecisions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden decisions", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, want, _ := strings.Cut(string(text), divider)
			got := decideText(t, in)
			if *rewrite {
				if err := os.WriteFile(file, []byte(in+divider+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got), see -rewrite\n%s", file, diff)
			}
		})
	}
}

// decideText reads lines of "policy NAME", "request key=value …" and "endpoint NAME key=value …",
// routes the request once per policy, and prints the decisions.
func decideText(t *testing.T, in string) string {
	req := &request.Request{Model: "demo", ExactTokens: true, BlockSize: 256, Choices: 1}
	q := newQuery(req, 0)
	var policies []string
	var fore []features.Forecast
	for _, line := range strings.Split(in, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "policy":
			policies = append(policies, words[1:]...)
		case words[0] == "request":
			for _, kv := range words[1:] {
				key, n := setting(t, kv)
				switch key {
				case "prompt":
					req.PromptTokens, req.PromptBytes, req.Blocks = int(n), int(4*n), make([]uint64, int(n)/64)
				case "media":
					req.MediaUnits = int(n)
				case "ttft":
					req.SLO.TTFT = time.Duration(n * float64(time.Millisecond))
				case "itl":
					req.SLO.ITL = time.Duration(n * float64(time.Millisecond))
				default:
					t.Fatalf("request: %s", kv)
				}
			}
		case words[0] == "endpoint":
			fore = append(fore, addEndpoint(t, q, words[1], words[2:]))
		default:
			t.Fatalf("line %q", line)
		}
	}
	q.Snap.Slots = len(q.Snap.States)
	if slices.ContainsFunc(fore, func(f features.Forecast) bool { return f.TTFT.Known() }) {
		q.Suppose(fore)
	}
	var out bytes.Buffer
	for _, name := range policies {
		d := route(t, made(t, name, router.Params{Fallbacks: 2}), q)
		printDecision(&out, name, q, d)
	}
	return out.String()
}

func setting(t *testing.T, kv string) (string, float64) {
	key, value, _ := strings.Cut(kv, "=")
	if value == "" {
		return key, 0
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatalf("%s: %v", kv, err)
	}
	return key, n
}

// addEndpoint adds an endpoint and returns what is foretold of it, by quantiles of 90 % in ms.
func addEndpoint(t *testing.T, q *router.Query, name string, settings []string) (fore features.Forecast) {
	one := newQuery(q.Req, 1)
	s := one.Snap.States[0]
	i := len(q.Snap.States)
	s.Endpoint = &fleet.Endpoint{Name: name, Model: "demo"}
	s.Slot, s.Instance = i, uint64(i+1)
	keep, hits, out := true, int32(0), ""
	for _, kv := range settings {
		key, n := setting(t, kv)
		switch key {
		case "requests":
			s.Requests = int32(n)
		case "uncached":
			s.Uncached, s.PendingTokens = int64(n), int64(n)
		case "context":
			s.Context = int64(n)
		case "waiting":
			s.Waiting = int32(n)
		case "running":
			s.Running = int32(n)
		case "kv":
			s.KVUsage = float32(n)
		case "hits":
			hits = int32(n)
		case "ttft":
			fore.TTFT = features.Prediction{P50: float32(n) / 1000, P90: float32(n) / 1000}
		case "itl":
			fore.ITL = features.Prediction{P50: float32(n) / 1000, P90: float32(n) / 1000}
		case "stale":
			s.At = t0.Add(-time.Minute)
		case "draining":
			keep, out = false, "draining"
		default:
			t.Fatalf("endpoint %s: %s", name, kv)
		}
	}
	q.Snap.States = append(q.Snap.States, s)
	q.Keep, q.Hits, q.Out = append(q.Keep, keep), append(q.Hits, hits), append(q.Out, out)
	return fore
}

func printDecision(w *bytes.Buffer, name string, q *router.Query, d *router.Decision) {
	at := func(i int) string { return q.Snap.States[i].Name }
	for i, why := range q.Out { // as the router does
		if why != "" {
			d.Why.Filtered[i] = why
		}
	}
	v := d.Why.Verdict(d.Index, at)
	v.Prompt, v.Cached, v.Propensity = q.Req.PromptTokens, q.Req.CachedTokens(int(q.Hits[d.Index])), d.Propensity
	fmt.Fprintf(w, "%s -> %s by %s, propensity %s", name, at(d.Index), d.Why.Reason, router.Percent(d.Propensity))
	for _, f := range d.Fallback {
		fmt.Fprintf(w, ", then %s", at(f))
	}
	fmt.Fprintf(w, "\n%s\n", v.Sentence())
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(d.Why.Terms) == 0 {
		w.WriteString("\n")
		return
	}
	unit := d.Why.Unit
	fmt.Fprintf(tab, "endpoint\t%s\t%s\t\n", strings.Join(d.Why.Terms, "\t"), unit)
	if !d.Why.HigherWins() && unit != "s" {
		unit = ""
	}
	for i := range q.Keep {
		if why := d.Why.Filtered[i]; why != "" {
			fmt.Fprintf(tab, "%s\tout: %s\t\n", at(i), why)
			continue
		}
		fmt.Fprintf(tab, "%s\t", at(i))
		for _, term := range d.Why.Row(i) {
			fmt.Fprintf(tab, "%s\t", router.Amount(float64(term), unit))
		}
		fmt.Fprintf(tab, "%s\t\n", router.Amount(float64(d.Why.Totals[i]), unit))
	}
	tab.Flush()
	w.WriteString("\n")
}
