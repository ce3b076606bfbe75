package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/internal/spell"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

// Policies returns the policies that can be configured by name, profiles of a configuration aside.
func Policies() router.Registry {
	r := baseline.Policies()
	r["adaptive"] = adaptive.Recipe()
	maps.Copy(r, predictive.Recipes())
	return r
}

// newPolicy makes the policy of that name: a profile of the configuration, or a built-in one.
func newPolicy(cfg *config.Config, name string, seed uint64) (router.Policy, error) {
	fallbacks := cfg.Answer.Endpoints - 1
	if spec, ok := cfg.Profiles[name]; ok {
		spec.Fallbacks = fallbacks
		p, err := router.NewProfile(name, spec)
		if err != nil {
			return nil, fmt.Errorf("profiles.%s: %w", name, err)
		}
		return p, nil
	}
	registry := Policies()
	base, _, _ := strings.Cut(name, ":") // what follows sets knobs
	if _, ok := registry[base]; !ok {
		known := slices.Concat(registry.Names(), slices.Sorted(maps.Keys(cfg.Profiles)))
		return nil, fmt.Errorf("policy: %q unknown; nearest %s, all: presage policies", base, spell.Nearest(base, known))
	}
	p, err := registry.New(name, router.Params{Seed: seed, Fallbacks: fallbacks})
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

func sameProfile(p, q router.ProfileSpec) bool {
	return slices.EqualFunc(p.Filters, q.Filters, func(f, g router.FilterSpec) bool { return f.Name == g.Name && sameNumber(f.Max, g.Max) }) &&
		(p.Filters == nil) == (q.Filters == nil) && maps.EqualFunc(p.Scorers, q.Scorers, sameNumber) &&
		p.Picker == q.Picker && sameNumber(p.Epsilon, q.Epsilon) && p.MaxAge == q.MaxAge && p.Probe == q.Probe
}

func sameNumber(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
