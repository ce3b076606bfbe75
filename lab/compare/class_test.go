package compare

import "testing"

func TestByClassPairsSeeds(t *testing.T) {
	result := func(fast, slow float64) *Result {
		return &Result{Classes: map[string]Class{"fast": {Requests: 10, Attainment: fast}, "slow": {Requests: 5, Attainment: slow}}}
	}
	one := &Result{Classes: map[string]Class{"fast": {Requests: 10, Attainment: 0.5}}} // a seed without slow requests
	got := byClass([]string{"a", "b"}, [][]*Result{{result(0.9, 0.8), result(0.7, 0.6), one}, {result(0.8, 0.9), result(0.6, 0.7), one}}, 1)
	if len(got) != 2 || got[0].Class != "fast" || got[1].Class != "slow" {
		t.Fatalf("%+v", got)
	}
	if c := got[0]; c.Seeds != 3 || c.Requests != 30 || c.Diff < 0.066 || c.Diff > 0.067 || c.A != "a" || c.B != "b" {
		t.Errorf("fast: %+v", c)
	}
	if c := got[1]; c.Seeds != 2 || c.Requests != 10 || c.Diff > -0.099 || c.Losses != 2 {
		t.Errorf("slow: %+v", c)
	}
	if got := byClass([]string{"a", "b"}, [][]*Result{{one}, {one}}, 1); got != nil {
		t.Errorf("one class is split: %+v", got)
	}
}
