package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/workload"
)

func TestCompareProgressSaysWhatIsLeft(t *testing.T) {
	var c compareCommand
	term := &terminal.Terminal{}
	began := time.Now().Add(-30 * time.Second)
	if got := c.progress(term, began, 0, 1, 25, 100); !strings.HasPrefix(got, "compare   25 % ###.........  25 of 100 runs  eta 1m30s") {
		t.Error(got)
	}
	if got := c.progress(term, began, 1, 2, 50, 100); !strings.HasPrefix(got, "compare   75 % #########...  50 of 100 runs of scenario 2 of 2  eta 10s") {
		t.Error(got)
	}
	if got := c.progress(term, began, 0, 1, 0, 0); strings.Contains(got, "eta") {
		t.Error(got)
	}
}

func TestCompareLoads(t *testing.T) {
	s := &workload.Scenario{Loads: []float64{.5, 1, 2}}
	for name, c := range map[string]struct {
		command compareCommand
		want    []float64
	}{
		"default":       {compareCommand{}, []float64{1}},
		"asked for":     {compareCommand{Load: []float64{2, 1, 2}}, []float64{1, 2}},
		"all":           {compareCommand{Sweep: true}, []float64{.5, 1, 2}},
		"all and these": {compareCommand{Sweep: true, Load: []float64{3, 1}}, []float64{.5, 1, 2, 3}},
	} {
		got, err := c.command.loads(s)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// TestTablesFitTheTerminal, and have one column at least.
func TestTablesFitTheTerminal(t *testing.T) {
	for width, want := range map[int]int{10: 1, 80: 3, 300: len(usualColumns)} {
		columns, err := fitting(width, []string{"predictive", "least-request"})
		if err != nil {
			t.Fatal(err)
		}
		if len(columns) < want || width < 300 && len(columns) > want+1 {
			t.Errorf("%d columns of figures in %d; want about %d", len(columns), width, want)
		}
	}
}
