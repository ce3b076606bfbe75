package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxEntries bounds the maps of a configuration.
const maxEntries = 1024

// maxWeight bounds a scorer's weight, so that no sum of weights loses the others or overflows.
const maxWeight = 1e6

// defaultWeight is the weight of a scorer that is named without one.
const defaultWeight = 1

// pairs walks a mapping with free keys; nothing is an empty mapping.
func (d *decoder) pairs(key string, n *node, want string, each func(key string, e entry)) {
	switch {
	case n.form == null:
	case n.form != mapping:
		d.fault(n.line, key, fmt.Sprintf("%s where %s is expected", n.form, want), "write name: value")
	case len(n.entries) > maxEntries:
		d.fault(n.line, key, fmt.Sprintf("%d entries: more than %d", len(n.entries), maxEntries), "remove some")
	default:
		for _, e := range n.entries {
			at := join(key, e.key)
			d.lines[at] = e.line
			if e.key == "" || strings.ContainsFunc(e.key, unicode.IsControl) {
				d.fault(e.line, shown(at), "not a usable name", "write a plain name")
				continue
			}
			each(at, e)
		}
	}
}

func rewriteOption(dst *map[string]string) option {
	return option{
		key: "request.rewrite", kind: "mapping of model name to model name", def: "none",
		about: "Model names that are replaced before the request is routed and sent, `alias: model`. The alias `\"*\"` stands for every name not listed, and for requests that name no model.",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]string)
			d.pairs(key, n, "a mapping of model names", func(at string, e entry) {
				s, ok := d.scalar(at, e.value, "a model name")
				switch {
				case !ok:
				case e.value.form != text || s == "" || strings.ContainsFunc(s, unicode.IsControl):
					d.fault(e.value.line, at, fmt.Sprintf("%q is no model name", shown(s)), "write the model's name, in quotes if it looks like a number")
				default:
					out[e.key] = s
				}
			})
			if len(out) > 0 {
				*dst = out
			}
		},
	}
}

func prioritiesOption(dst *map[string]int) option {
	return option{
		key: "priorities", kind: "mapping of objective to whole number", def: "none",
		about: "Priority of the objectives that requests name in `x-gateway-inference-objective`; higher is more urgent, others are 0. Negative priorities are shed first.",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]int)
			d.pairs(key, n, "a mapping of priorities", func(at string, e entry) {
				if v, ok := d.whole(at, e.value, math.MinInt32, math.MaxInt32); ok {
					out[e.key] = v
				}
			})
			if len(out) > 0 {
				*dst = out
			}
		},
	}
}

func profilesOption(dst *map[string]Profile) option {
	return option{
		key: "profiles", kind: "mapping of name to profile", def: "none",
		about: "Weighted policies of your own, or another make-up of `weighted`; see [Profiles](#profiles).",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]Profile)
			d.pairs(key, n, "a mapping of profiles", func(at string, e entry) {
				if slices.Contains(d.names.Policies, e.key) && e.key != "weighted" {
					d.fault(e.line, at, "the name of a built-in policy", "choose another name")
				}
				out[e.key] = d.profile(at, e.value)
			})
			if len(out) > 0 {
				*dst = out
			}
		},
	}
}

// profile reads one profile and adds what it is not told: no filter, the picker max.
func (d *decoder) profile(key string, n *node) Profile {
	p := Profile{Picker: "max"}
	d.pairs(key, n, "a profile", func(at string, e entry) {
		switch e.key {
		case "filters":
			p.Filters = d.filters(at, e.value)
		case "scorers":
			p.Scorers = d.scorers(at, e.value)
		case "picker":
			if s, ok := d.scalar(at, e.value, "one of "+strings.Join(d.names.Pickers, ", ")); ok {
				p.Picker = s
				if !slices.Contains(d.names.Pickers, s) {
					d.fault(e.value.line, at, fmt.Sprintf("%q unknown", shown(s)), oneOf(s, d.names.Pickers))
				}
			}
		default:
			d.fault(e.line, shown(at), "no such key", oneOf(e.key, []string{"filters", "scorers", "picker"}))
		}
	})
	if n.form == mapping && !d.given(key+".scorers") {
		d.fault(n.line, key, "no scorers", "name at least one under scorers: "+strings.Join(d.names.Scorers, ", "))
	}
	if n.form == null {
		d.fault(n.line, key, "an empty profile", "name at least one scorer under scorers: "+strings.Join(d.names.Scorers, ", "))
	}
	return p
}

func (d *decoder) filters(key string, n *node) []string {
	if n.form != sequence {
		if n.form != null {
			d.fault(n.line, key, n.form.String()+" where a list of filters is expected", "write [name, name]")
		}
		return nil
	}
	var out []string
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", key, i)
		s, ok := d.scalar(at, item, "a filter name")
		switch {
		case !ok:
		case !slices.Contains(d.names.Filters, s):
			d.fault(item.line, at, fmt.Sprintf("%q unknown", shown(s)), oneOf(s, d.names.Filters))
		case slices.Contains(out, s):
			d.fault(item.line, at, fmt.Sprintf("%q given twice", s), "keep one")
		default:
			out = append(out, s)
		}
	}
	return out
}

func (d *decoder) scorers(key string, n *node) []Weight {
	weights := make(map[string]float64)
	d.pairs(key, n, "a mapping of scorer to weight", func(at string, e entry) {
		if !slices.Contains(d.names.Scorers, e.key) {
			d.fault(e.line, shown(at), "no such scorer", oneOf(e.key, d.names.Scorers))
			return
		}
		if w, ok := d.weight(at, e.value); ok {
			weights[e.key] = w
		}
	})
	if n.form == null || n.form == mapping && len(n.entries) == 0 {
		d.fault(n.line, key, "no scorers", "name at least one of "+strings.Join(d.names.Scorers, ", "))
	}
	out := make([]Weight, 0, len(weights))
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		out = append(out, Weight{Scorer: name, Weight: weights[name]})
		sum += weights[name]
	}
	if len(out) > 0 && sum == 0 {
		d.warn(n.line, key, "all weights are 0: every endpoint scores alike", "give one scorer a weight above 0")
	}
	return out
}

// weight reads a scorer's weight; nothing written is the default, 0 is 0.
func (d *decoder) weight(key string, n *node) (float64, bool) {
	want := fmt.Sprintf("a number from 0 to %g", float64(maxWeight))
	if n.form == null {
		return defaultWeight, true
	}
	s, ok := d.scalar(key, n, want)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case n.quoted:
		d.fault(n.line, key, fmt.Sprintf("%q is text", shown(s)), "write "+want+", without quotes")
	case err != nil && math.IsInf(v, 0), err == nil && (v < 0 || v > maxWeight || math.IsNaN(v)):
		d.fault(n.line, key, shown(s)+" is out of range", "write "+want)
	case err != nil || n.form == boolean:
		d.fault(n.line, key, fmt.Sprintf("%q is no number", shown(s)), "write "+want)
	default:
		return v, true
	}
	return 0, false
}
