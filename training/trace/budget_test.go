package trace

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
)

// TestB50StaysInsideTheBudget: an hour at 2,000 rows a second, one row standing for a hundred and twenty, into the
// smallest budget: the directory never grows beyond it, and the newest rows are the ones kept.
func TestB50StaysInsideTheBudget(t *testing.T) {
	if raced {
		t.Skip("too slow under the race detector; one goroutine does all of it")
	}
	dir := t.TempDir()
	start := t0.Add(40 * time.Minute) // over the border of an hour
	c := newClock(start)
	l := open(t, dir, Options{Now: c.now, Budget: MinBudget})
	const rows, each = 3600 * 2000 / 120, 6000
	o := sample(start, 0)
	rng := rand.NewChaCha8([32]byte{1})
	name := make([]byte, 900)
	var most int64
	for n := 0; n < rows; n += each {
		for k := range each {
			o.At = start.Add(time.Duration(n+k) * 60 * time.Millisecond)
			o.PromptTokens = n + k
			_, _ = rng.Read(name) // never fails; nothing that compresses
			o.Model = string(name)
			l.Observe(o)
		}
		c.set(o.At)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		bytes, err := usage(dir)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, bytes)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if most > MinBudget {
		t.Errorf("%d MiB on disk, the budget is %d", most>>20, int64(MinBudget)>>20)
	}
	s := l.Stats()
	if s.Written != rows || s.Removed == 0 {
		t.Errorf("%+v", s)
	}
	first, last, kept := -1, 0, 0
	if _, err := l.Scan(time.Time{}, time.Time{}, func(o *features.Observation) error {
		if first < 0 {
			first = o.PromptTokens
		}
		last = o.PromptTokens
		kept++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if last != rows-1 || kept != rows-first || kept < rows/20 {
		t.Errorf("rows %d to %d, %d of them", first, last, kept)
	}
	t.Logf("at most %d MiB; %d of %d rows kept, %d removals", most>>20, kept, rows, s.Removed)
}
