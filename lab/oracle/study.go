package oracle

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/compare"
)

// Names of the references and of what gains are counted from.
const (
	ByClairvoyant = "clairvoyant"
	ByHindsight   = "hindsight"
	ByBound       = "bound"
	base          = "round-robin"
)

// Study asks how much of the references' gain over round robin each policy captures, on one scenario at
// one load. The arena's registry must have the policies, round-robin and, where it is a reference, the
// clairvoyant of [Recipes].
type Study struct {
	Arena      *compare.Arena
	Load       float64
	Seeds      []uint64
	Policies   []string
	References []string              // of ByClairvoyant, ByHindsight (on short arenas) and ByBound; at least one
	Replays    int                   // of a search in hindsight; see [Hindsight]
	Workers    int                   // seeds at a time; 0: one
	Progress   func(done, total int) // called after each seed, one call at a time; nil: nobody wants to know
}

// Result is what a study found. Attainments are means over seeds, in percent.
type Result struct {
	Scenario   string             `json:"scenario"`
	Load       float64            `json:"load"`
	Seeds      int                `json:"seeds"`
	Attainment map[string]float64 `json:"slo_attainment"` // of policies, round robin and references
	Captured   []Captured         `json:"captured"`       // by policy and reference
	// Reference is the one to hold each policy against, by policy: the clairvoyant; where the policy
	// beats it, hindsight. Empty where what is needed is no reference of the study.
	Reference map[string]string `json:"reference"`
}

// Run plays all seeds. On an error or when ctx is done, the result holds the seeds that were finished,
// and is nil where none was.
func (s *Study) Run(ctx context.Context) (*Result, error) {
	if len(s.References) == 0 {
		return nil, fmt.Errorf("no reference; name one of %s, %s, %s", ByClairvoyant, ByHindsight, ByBound)
	}
	for _, r := range s.References {
		if r != ByClairvoyant && r != ByHindsight && r != ByBound {
			return nil, fmt.Errorf("reference %q unknown; all: %s, %s, %s", r, ByClairvoyant, ByHindsight, ByBound)
		}
	}
	bySeed := make([]map[string]float64, len(s.Seeds))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	next, done := 0, 0
	for range min(max(s.Workers, 1), len(s.Seeds)) {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for first == nil && next < len(s.Seeds) {
				k := next
				next++
				mu.Unlock()
				got, err := s.seed(ctx, s.Seeds[k])
				mu.Lock()
				if err != nil {
					if first == nil {
						first = err
					}
					return
				}
				bySeed[k] = got
				done++
				if s.Progress != nil {
					s.Progress(done, len(s.Seeds))
				}
			}
		})
	}
	wg.Wait()
	bySeed = slices.DeleteFunc(bySeed, func(m map[string]float64) bool { return m == nil })
	if len(bySeed) == 0 {
		return nil, first
	}
	return s.result(bySeed), first
}

// seed plays one seed and returns attainments in percent, by name.
func (s *Study) seed(ctx context.Context, seed uint64) (map[string]float64, error) {
	got := map[string]float64{}
	play := slices.Concat([]string{base}, s.Policies)
	if slices.Contains(s.References, ByClairvoyant) {
		play = append(play, ByClairvoyant)
	}
	for _, name := range play {
		if _, ok := got[name]; ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := s.Arena.Play(name, s.Load, seed)
		if err != nil {
			return nil, err
		}
		got[name] = 100 * r.Attainment
	}
	for _, name := range s.References {
		switch name {
		case ByBound:
			b, err := Upper(s.Arena, s.Load, seed)
			if err != nil {
				return nil, err
			}
			got[name] = 100 * b.Attainment
		case ByHindsight:
			h := Hindsight{Arena: s.Arena, Start: play, Replay: s.Replays}
			f, err := h.Search(ctx, s.Load, seed)
			if err != nil {
				return nil, err
			}
			got[name] = 100 * f.Attainment
		}
	}
	return got, nil
}

func (s *Study) result(bySeed []map[string]float64) *Result {
	values := func(name string) []float64 {
		v := make([]float64, len(bySeed))
		for k, m := range bySeed {
			v[k] = m[name]
		}
		return v
	}
	r := &Result{
		Scenario: s.Arena.Scenario.Name, Load: s.Load, Seeds: len(bySeed),
		Attainment: map[string]float64{}, Reference: map[string]string{},
	}
	for name := range bySeed[0] {
		r.Attainment[name] = stat.Mean(values(name))
	}
	for _, p := range s.Policies {
		for _, ref := range s.References {
			r.Captured = append(r.Captured, capture(p, ref, values(p), values(ref), values(base)))
		}
		want := ByClairvoyant
		if _, ok := r.Attainment[want]; !ok || r.Attainment[p] > r.Attainment[want] {
			want = ByHindsight
		}
		if slices.Contains(s.References, want) {
			r.Reference[p] = want
		}
	}
	return r
}
