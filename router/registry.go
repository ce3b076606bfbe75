package router

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/presage-router/presage/internal/spell"
)

// Params are what a policy may be given when it is made. The zero value means published defaults.
type Params struct {
	Seed        uint64  // of a policy's own choices, as where a rotation starts; draws use Query.Rand
	Fallbacks   int     // further endpoints named in a decision
	PeakPrefill float64 // prefill throughput of one endpoint, tokens per second; 0: as published
	BlockSize   int     // tokens per KV block, for formulas in blocks; 0: 16

	Knobs map[string]float64 // by name, of the recipe's knobs and within their bounds; missing: the default
}

// Knob returns the value given to a knob, or its default.
func (p *Params) Knob(k Knob) float64 {
	if v, ok := p.Knobs[k.Name]; ok {
		return v
	}
	return k.Default
}

// Knob is a number that changes how a policy decides.
type Knob struct {
	Name      string
	About     string // one line, with its unit
	Default   float64
	Low, High float64 // bounds, inclusive
}

// Recipe is one policy that can be chosen by name.
type Recipe struct {
	About string                       // one line, for people
	Knobs []Knob                       // what can be set, most important first
	New   func(Params) (Policy, error) // a fresh policy, for one router
}

// Registry holds policies by name.
type Registry map[string]Recipe

// Names returns the names, sorted.
func (r Registry) Names() []string { return sorted(r) }

// New makes the policy of that name. The name may set knobs, as in predictive:stall=0.3,slo=0. An
// unknown policy or knob gets the nearest known one in the error.
func (r Registry) New(name string, p Params) (Policy, error) {
	base, settings, set := strings.Cut(name, ":")
	recipe, ok := r[base]
	if !ok {
		return nil, fmt.Errorf("%q unknown; nearest %s, all: presage policies", base, spell.Nearest(base, r.Names()))
	}
	if set {
		knobs, err := recipe.parse(settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", base, err)
		}
		p.Knobs = knobs
	}
	return recipe.New(p)
}

// parse reads the settings of knobs, as stall=0.3,slo=0.
func (r *Recipe) parse(settings string) (map[string]float64, error) {
	knobs := map[string]float64{}
	for _, part := range strings.Split(settings, ",") {
		name, text, ok := strings.Cut(part, "=")
		v, err := strconv.ParseFloat(text, 64)
		i := slices.IndexFunc(r.Knobs, func(k Knob) bool { return k.Name == name })
		switch {
		case len(r.Knobs) == 0:
			return nil, fmt.Errorf("knob %q: the policy has none", name)
		case i < 0:
			known := make([]string, len(r.Knobs))
			for j, k := range r.Knobs {
				known[j] = k.Name
			}
			return nil, fmt.Errorf("knob %w", errors.New(unknown(name, known)))
		case !ok || err != nil:
			return nil, fmt.Errorf("knob %s: %q is no number", name, text)
		case !(v >= r.Knobs[i].Low && v <= r.Knobs[i].High):
			return nil, fmt.Errorf("knob %s: %v is not within %v and %v", name, v, r.Knobs[i].Low, r.Knobs[i].High)
		}
		if _, twice := knobs[name]; twice {
			return nil, fmt.Errorf("knob %s: set twice", name)
		}
		knobs[name] = v
	}
	return knobs, nil
}

// unknown is the end of an error about a name that is not in the list.
func unknown(name string, known []string) string {
	return fmt.Sprintf("%q unknown; nearest %s, all: %s", name, spell.Nearest(name, known), strings.Join(known, ", "))
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
