package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// logOf runs a workload and returns everything the engine said, as text.
func logOf(t *rapid.T, cfg Config, acts []act) string {
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	var kv bytes.Buffer
	drive(t, e, acts, func(events []Event, changes []KVEvent) {
		for _, ev := range events {
			fmt.Fprintln(&b, int64(ev.At), ev.ID, ev.Kind, ev.N)
		}
		for _, ev := range changes {
			fmt.Fprintln(&kv, int64(ev.At), ev.Kind, ev.ID, ev.First, ev.Hashes)
		}
	})
	var s Stats
	e.Stats(&s)
	fmt.Fprintf(&b, "%+v\n", s)
	return b.String() + kv.String()
}

func TestMacroStepsEqualSingleSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		acts := drawActs(t, &cfg, false)
		macro := logOf(t, cfg, acts)
		cfg.SingleStep = true
		if diff := cmp.Diff(logOf(t, cfg, acts), macro); diff != "" {
			t.Fatalf("-single +macro:\n%s", diff)
		}
	})
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.Noise, cfg.Seed = 0.1, rapid.Uint64().Draw(t, "seed")
		acts := drawActs(t, &cfg, false)
		first := logOf(t, cfg, acts)
		if diff := cmp.Diff(first, logOf(t, cfg, acts)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestMacroStepOfLongAnswers checks the closed form over hours: one macro-step of 100,000 tokens on
// a real engine ends to the nanosecond where single steps end.
func TestMacroStepOfLongAnswers(t *testing.T) {
	run := func(single bool) []Event {
		e := h100(t, func(c *Config) { c.SingleStep = single; c.Blocks = 40000 })
		for i := range 3 {
			if _, err := e.Submit(time.Duration(i)*time.Minute, &Request{ID: uint64(i), PromptTokens: 1000, OutputTokens: 100000}); err != nil {
				t.Fatal(err)
			}
		}
		var log []Event
		advances := 0
		for due, ok := e.Next(); ok; due, ok = e.Next() {
			log = append(log, e.Advance(due)...)
			advances++
		}
		if !single && advances > 40 {
			t.Errorf("%d calls of Advance for three answers", advances)
		}
		return log
	}
	if diff := cmp.Diff(run(true), run(false)); diff != "" {
		t.Fatalf("-single +macro:\n%s", diff)
	}
}

// h100 is an H100 with Llama-3.1-8B.
func h100(t testing.TB, change func(*Config)) *Engine {
	t.Helper()
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.Find("H100", "llama-3.1-8b", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Coefs: *c}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
