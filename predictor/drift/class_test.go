package drift

import (
	"testing"
	"time"
)

func TestClassAlarms(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		endpoint int
		dir      Direction
		at       time.Duration
		want     bool
	}
	for _, c := range []struct {
		name  string
		size  int
		steps []step
	}{
		{"the lone one", 1, []step{{0, Slower, 0, true}, {0, None, 1, false}, {0, Faster, 2, true}}},
		{"one of two is no class", 2, []step{{0, Slower, 0, false}, {0, Slower, time.Second, false}, {1, Slower, 2 * time.Second, true}}},
		{"two at least", 4, []step{{3, Slower, 0, false}, {1, Slower, 0, true}, {0, Slower, 0, false}}},
		{"three of ten", 10, []step{{9, Slower, 0, false}, {1, Slower, 0, false}, {5, Slower, 0, true}}},
		{"four of eleven", 11, []step{{9, Slower, 0, false}, {1, Slower, 0, false}, {5, Slower, 0, false}, {6, Slower, 0, true}}},
		{"same direction", 4, []step{{0, Slower, 0, false}, {1, Faster, 0, false}, {2, Faster, 0, true}}},
		{"within the window", 2, []step{{0, Slower, 0, false}, {1, Slower, time.Minute + 1, false}, {0, Slower, 2*time.Minute + 1, true}}},
		{"used up", 2, []step{{0, Slower, 0, false}, {1, Slower, 0, true}, {1, Slower, 1, false}, {0, Slower, 2, true}}},
		{"no endpoint", 1, []step{{-1, Slower, 0, false}}},
	} {
		k, err := NewClass(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range c.steps {
			if got := k.Alarm(s.endpoint, c.size, s.dir, t0.Add(s.at)); got != s.want {
				t.Errorf("%s: step %d: %v", c.name, i, got)
			}
		}
	}
}

func TestForgottenEndpointsDoNotCount(t *testing.T) {
	k, err := NewClass(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	k.Alarm(5, 2, Slower, now)
	k.Forget(5)
	k.Forget(7)
	k.Forget(-1)
	if k.Alarm(0, 2, Slower, now) {
		t.Error("an endpoint that left counts")
	}
	for _, w := range []time.Duration{0, -1} {
		if _, err := NewClass(w); err == nil {
			t.Errorf("window %v accepted", w)
		}
	}
}
