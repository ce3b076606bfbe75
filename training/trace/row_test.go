package trace

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample is a record with every field set.
func sample(at time.Time, n int) *features.Observation {
	o := &features.Observation{
		ID: "d-8f3k2m", At: at, API: request.Chat, Model: "llama-3.1-8b", Adapter: "sql", Stream: true,
		SLO:      request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond, E2E: time.Minute},
		Priority: -3, Endpoint: "h100-1", Picked: "h100-1", Policy: "predictive", Arm: "a", Schema: features.Schema(),
		Where:      features.Where{Class: unique.Make(fleet.Class{Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1}), Slot: 3, Instance: 17},
		Propensity: .95, HitBlocks: 4, HitTokens: 256, Blocks: 9, MaxTokens: 512, PromptTokens: n, ExactPrompt: true,
		CachedTokens: 128, OutputTokens: 77, ExactOutput: true, TTFT: 83 * time.Millisecond, ITL: 11 * time.Millisecond,
		E2E: 930 * time.Millisecond, Cause: fleet.Complete, Status: 200,
		Fore: features.Forecast{
			TTFT: features.Prediction{Mean: .1, P50: .09, P90: .2, P99: .4}, ITL: features.Prediction{Mean: .01, P50: .011, P90: .012, P99: .02},
			Price: features.Price{First: .1, KVWait: .2, Prefill: .3, Gap: .02, Decode: .4, Sigma: .05},
		},
		Session: 1 << 63, Choice: features.Choice{Among: 3, Rank: 1, TTFT: [features.MostExplored]float32{.1, .15, 0}},
		State: fleet.Inflight{
			Requests: 5, Pending: 2, Streaming: 3, PendingTokens: 900, Uncached: 500, Attention: 12345, HeadUncached: 400, Context: 4096,
			OldestPending: at.Add(-80 * time.Millisecond), LastBegin: at.Add(-10 * time.Millisecond), LastEnd: at.Add(-time.Hour), Begun: 812, BegunUncached: 99999,
		},
		Load: fleet.Load{
			At: at.Add(-120 * time.Millisecond), Known: fleet.KnowWaiting | fleet.KnowKV, Waiting: 1, Running: 4, KVUsage: .37, KVMax: .4, BlockSize: 16,
			Blocks: 28000, MaxLoRA: 4, Queries: 1e6, Hits: 5e5, Prompt: 3e6, Generated: 1e5, Preemptions: 2, Errors: 1, Held: fleet.KnowLoRA,
			HeldAt: at.Add(-time.Second), ChangedAt: at.Add(-2 * time.Second), Own: 5, Restarts: 1, Unreachable: true,
		},
	}
	for f := range o.X {
		o.X[f] = float32(f) + .5
	}
	o.X[features.MaxTokens] = float32(math.NaN())
	o.Said = features.Nothing()
	o.Said[0][2] = -2.5
	return o
}

// same compares records; times by instant, NaN with NaN.
var same = []cmp.Option{
	cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b fleet.ClassID) bool { return a == b }),
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	bare := &features.Observation{At: t0, CachedTokens: features.Unknown, OutputTokens: features.Unknown}
	for _, o := range []*features.Observation{sample(t0, 800), bare} {
		b, err := appendRow(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		var got features.Observation
		if err := parseRow(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*o, got, same...); diff != "" {
			t.Error(diff)
		}
		for n := range b {
			if err := parseRow(b[:n], &got); err == nil {
				t.Fatalf("a row cut to %d of %d bytes was read", n, len(b))
			}
		}
		if err := parseRow(append(b, 0), &got); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("a longer row: %v", err)
		}
	}
}

// TestRowsOfTheFirstVersion: logs from before sessions and choices were kept are read.
func TestRowsOfTheFirstVersion(t *testing.T) {
	want := sample(t0, 800)
	want.Session, want.Choice = 0, features.Choice{}
	b, err := appendRow(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	b = b[:len(b)-2] // no session, nothing drawn
	b[0] = 1
	var got features.Observation
	if err := parseRow(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got, same...); diff != "" {
		t.Error(diff)
	}
}

// TestEveryFieldIsWritten: a field added to the record must not be lost in the log.
func TestEveryFieldIsWritten(t *testing.T) {
	for _, v := range []any{features.Observation{}, fleet.Inflight{}, fleet.Load{}, request.SLO{}, fleet.Class{}, features.Where{}, features.Price{}, features.Prediction{}, features.Choice{}} {
		want := map[string]int{"Observation": 36, "Choice": 3, "Inflight": 15, "Load": 23, "SLO": 3, "Class": 4, "Where": 3, "Price": 6, "Prediction": 4}
		typ := reflect.TypeOf(v)
		if typ.NumField() != want[typ.Name()] {
			t.Errorf("%s has %d fields, the row was written for %d: add them to the row under a new version", typ.Name(), typ.NumField(), want[typ.Name()])
		}
	}
}

func TestOddRecordsAreRefusedByName(t *testing.T) {
	for want, spoil := range map[string]func(*features.Observation){
		"propensity": func(o *features.Observation) { o.Propensity = math.NaN() },
		"ttft":       func(o *features.Observation) { o.TTFT = -1 },
		"e2e":        func(o *features.Observation) { o.E2E = 1 << 62 },
		"status":     func(o *features.Observation) { o.Status = 1000 },
		"cause":      func(o *features.Observation) { o.Cause = 200 },
		"api":        func(o *features.Observation) { o.API = 99 },
		"forecast":   func(o *features.Observation) { o.Fore.TTFT.P99 = float32(math.Inf(1)) },
		"kv_usage":   func(o *features.Observation) { o.Load.KVUsage = float32(math.NaN()) },
		"cached":     func(o *features.Observation) { o.CachedTokens = -2 },
		"schema":     func(o *features.Observation) { o.Schema = "v0-12345678" },
		"at: -":      func(o *features.Observation) { o.At = time.Unix(-5, 0) },
	} {
		o := sample(t0, 1)
		spoil(o)
		b, err := appendRow([]byte("x"), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if string(b) != "x" {
			t.Errorf("%s: bytes of a refused row remain", want)
		}
	}
}

func TestOtherVersionsAndSchemasAreNamed(t *testing.T) {
	b, err := appendRow(nil, sample(t0, 1))
	if err != nil {
		t.Fatal(err)
	}
	var o features.Observation
	b[0] = 9
	if err := parseRow(b, &o); !errors.Is(err, errVersion) || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("version: %v", err)
	}
	b[0] = rowVersion
	b[2] ^= 1 // the first letter of the schema
	if err := parseRow(b, &o); !errors.Is(err, errSchema) || !strings.Contains(err.Error(), string(features.Schema())) {
		t.Errorf("schema: %v", err)
	}
}

// TestLongNamesAreCut: names come from clients and are of any length.
func TestLongNamesAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := sample(t0, 1)
		o.Model = strings.Repeat(rapid.StringN(1, 40, 200).Draw(t, "unit"), 200)
		b, err := appendRow(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		var got features.Observation
		if err := parseRow(b, &got); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(o.Model, got.Model) || len(got.Model) > maxText || len(got.Model) < min(len(o.Model), maxText-4) {
			t.Fatalf("%d bytes of %d kept", len(got.Model), len(o.Model))
		}
	})
}

func FuzzRow(f *testing.F) {
	for _, o := range []*features.Observation{sample(t0, 800), {At: t0}} {
		b, err := appendRow(nil, o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{})
	f.Add([]byte{rowVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		var o features.Observation
		if parseRow(data, &o) != nil {
			return
		}
		b, err := appendRow(nil, &o)
		if err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		var again features.Observation
		if err := parseRow(b, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, again, same...); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkAppendRow(b *testing.B) {
	o := sample(t0, 800)
	buf, _ := appendRow(nil, o)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = appendRow(buf[:0], o)
	}
}
