package sensitivity

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/lab/compare"
)

// changed tells what differs between two results, but for the name of the policy.
func changed(a, b *compare.Result) string {
	return cmp.Diff(a, b, cmpopts.IgnoreUnexported(compare.Result{}), cmpopts.IgnoreFields(compare.Result{}, "Policy"), cmpopts.EquateNaNs())
}

// TestNothingWrongChangesNothing: each dimension at the value that means nothing is the plain run, to
// the last figure.
func TestNothingWrongChangesNothing(t *testing.T) {
	a := ring(t)
	plain := played(t, a, "predictive", "", "")
	for dimension, value := range map[string]string{
		"scrapes": "0s", "ledger": "0s", "error": "0", "error-told": "0", "bias": "0", "labels": "0s", "answers": "mean", "index": "missed=0",
		"routers": "1", "learning": "class", "terms": "stall=0.2",
	} {
		if diff := changed(plain, played(t, a, "predictive", dimension, value)); diff != "" {
			t.Errorf("%s %s: -plain +played:\n%s", dimension, value, diff)
		}
	}
}

// TestEverythingWrongChangesSomething: each value that is played where none are given makes another
// run than the plain one; played twice it is the same.
func TestEverythingWrongChangesSomething(t *testing.T) {
	a := ring(t)
	plain, weighted := played(t, a, "predictive", "", ""), played(t, a, "llmd-weighted", "", "")
	idle := map[string]bool{ // of no effect here: no KV cache is full, so nothing waits for blocks or is evicted; no SLO is in danger
		"terms kv=0": true, "index true": true, "terms slo=0": true,
	}
	for _, d := range Dimensions() {
		for _, v := range d.Values {
			policy, plain := "predictive", plain
			if d.Name == "scrapes" { // of pages the predictive rule reads little but how full caches are
				policy, plain = "llmd-weighted", weighted
			}
			r := played(t, a, policy, d.Name, v)
			if other := changed(r, plain) != ""; other == idle[d.Name+" "+v] {
				t.Errorf("%s %s: another run: %v", d.Name, v, other)
			}
			if v == d.Values[0] {
				if diff := changed(r, played(t, a, policy, d.Name, v)); diff != "" {
					t.Errorf("%s %s: played twice: %s", d.Name, v, diff)
				}
			}
			if r.Requests != plain.Requests {
				t.Errorf("%s %s: %d requests, plainly %d", d.Name, v, r.Requests, plain.Requests)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	c, err := Choose("labels,error=0.3/0.5")
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != 2 || len(c[0].Settings) != 2 || c[0].Settings[1].Value != "10s" || c[1].Settings[0].Value != "0.3" || c[1].Settings[1].Value != "0.5" {
		t.Errorf("%+v", c)
	}
	if c, err = Choose("all"); err != nil || len(c) != len(Dimensions()) {
		t.Errorf("all: %d dimensions, %v", len(c), err)
	}
	for list, want := range map[string]string{
		"":                 `"" unknown`,
		"lables":           `"lables" unknown; nearest labels`,
		"labels,labels":    "labels: named twice",
		"scrapes=fast":     `scrapes: "fast" is no time within 0 and 1m0s`,
		"ledger=-1s":       `ledger: "-1s" is no time`,
		"labels=2h":        `labels: "2h" is no time within 0 and 1h0m0s`,
		"error=NaN":        `error: "NaN" is no number within 0 and 3`,
		"bias=-0.1":        `bias: "-0.1" is no number`,
		"answers=guessed":  `answers: "guessed" unknown`,
		"index=false":      `index: "false" unknown; all: missed=SHARE`,
		"index=missed=1.5": `index: missed: "1.5" is no number within 0 and 1`,
		"routers=0":        `routers: "0" is no number of routers within 1 and 64`,
		"routers=two":      `routers: "two" is no number`,
		"learning=of":      `learning: "of" unknown; nearest`,
		"terms=decode":     `terms: "decode" sets no knob`,
		"error=":           `error: "" is no number`,
	} {
		if _, err := Choose(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

func TestCheckFindsForeignKnobs(t *testing.T) {
	choices, err := Choose("terms=decode=0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{Arena: ring(t), Policy: "lmetric", Choices: choices}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), `terms: lmetric: knob "decode"`) {
		t.Errorf("error %v", err)
	}
	s.Policy = "predictive:stall=0.3"
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestStudy: rows come in order, paired with the plain run; interrupted, those made so far are there.
func TestStudy(t *testing.T) {
	choices, err := Choose("scrapes=0s/1s")
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{Arena: ring(t), Policy: "round-robin", Load: 1, Seeds: []uint64{1, 2}, Choices: choices, Workers: 2}
	table, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 3 || table.Rows[0].Diff != nil || table.Rows[1].Setting != "0s" || table.Rows[2].Seeds != 2 {
		t.Fatalf("%+v", table)
	}
	if d := table.Rows[1].Diff; d == nil || *d != 0 || *table.Rows[1].CI95 != [2]float64{0, 0} {
		t.Errorf("no difference is %v, %v", d, table.Rows[1].CI95)
	}
	if text := table.Markdown(); strings.Count(text, "\n") != 5 || !strings.Contains(text, "| scrapes | 1s |") || !strings.Contains(text, "| nothing |  |") {
		t.Errorf("%s", text)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.Workers = 1
	s.Progress = func(done, total int) {
		if total != 6 {
			t.Errorf("%d runs in all", total)
		}
		if done == 4 {
			stop()
		}
	}
	table, err = s.Run(ctx)
	if !errors.Is(err, context.Canceled) || len(table.Rows) != 3 || table.Rows[0].Seeds != 2 || table.Rows[1].Seeds != 1 || table.Rows[1].Diff != nil {
		t.Errorf("interrupted: %v, %+v", err, table)
	}
}
