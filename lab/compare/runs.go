package compare

import (
	"context"
	"slices"
	"sync"
)

// Runs makes runs in one arena and keeps their results, so that none is made twice. Its methods may be
// called from several goroutines.
type Runs struct {
	Arena     *Arena
	Reference string // policy that Result.Changed counts against; empty: none
	// Progress is told of every run that was made, with the number that is planned by now, one call
	// at a time; nil: nobody wants to know.
	Progress func(done, planned int)

	mu            sync.Mutex
	kept          map[runKey]*Result
	done, planned int
}

// runKey is one run. Runs with equal load and seed have the same arrivals.
type runKey struct {
	policy string
	load   float64
	seed   uint64
}

// Plan adds to the number of runs that will be made, for progress alone.
func (r *Runs) Plan(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planned += n
}

// Made returns how many runs were made and how many are planned.
func (r *Runs) Made() (done, planned int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done, max(r.done, r.planned)
}

// Result is a run that was made, or nil.
func (r *Runs) Result(policy string, load float64, seed uint64) *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[runKey{policy, load, seed}]
}

// Play makes a run, or returns it if it was made. When ctx is done, no run is begun.
func (r *Runs) Play(ctx context.Context, policy string, load float64, seed uint64) (*Result, error) {
	if got := r.Result(policy, load, seed); got != nil {
		return got, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	got, err := r.Arena.Play(policy, load, seed)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[runKey]*Result{}
	}
	r.kept[runKey{policy, load, seed}] = got
	r.match(got)
	r.done++
	if r.Progress != nil {
		r.Progress(r.done, max(r.done, r.planned))
	}
	return got, nil
}

// match compares the picks of a run with those of the reference, as soon as both are there. Only
// those of the reference are kept.
func (r *Runs) match(got *Result) {
	switch {
	case r.Reference == "":
		got.picks = nil
	case got.Policy == r.Reference:
		got.Changed = 0
		for k, other := range r.kept {
			if k.load == got.Load && k.seed == got.Seed && other != got && other.picks != nil {
				other.Changed, _ = got.picks.changed(other.picks)
				other.picks = nil
			}
		}
	default:
		if ref := r.kept[runKey{r.Reference, got.Load, got.Seed}]; ref != nil {
			got.Changed, _ = ref.picks.changed(got.picks)
			got.picks = nil
		}
	}
}

// forget drops the picks of a seed of which no further run is made: they are most of what a result holds.
func (r *Runs) forget(seed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, got := range r.kept {
		if k.seed == seed {
			got.picks = nil
		}
	}
}

// each calls do for 0 to n-1, so many at a time, in that order of beginning. After an error no
// further one is begun; the first error is returned.
func each(workers, n int, do func(i int) error) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	next := 0
	for range min(max(workers, 1), n) {
		wg.Go(func() {
			for {
				mu.Lock()
				if first != nil || next == n {
					mu.Unlock()
					return
				}
				i := next
				next++
				mu.Unlock()
				if err := do(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// unique returns the list with no name twice.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
