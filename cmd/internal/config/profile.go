package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/presage-router/presage/router"
)

func profilesOption(dst *map[string]router.ProfileSpec) option {
	return option{
		key: "profiles", kind: "mapping of name to profile", def: "none",
		about: "Weighted policies of your own, or another make-up of `weighted`; see [Profiles](#profiles).",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]router.ProfileSpec)
			d.pairs(key, n, "a mapping of profiles", func(at string, e entry) {
				if slices.Contains(d.policies, e.key) && e.key != "weighted" {
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

// profileKeys are the keys of one profile.
func profileKeys() []string {
	return []string{"filters", "scorers", "picker", "epsilon", "max_age", "probe"}
}

// profile reads one profile. Where every part is right by itself, the profile is made once, so that
// what its parts have to do with each other is checked by the code that will run.
func (d *decoder) profile(key string, n *node) router.ProfileSpec {
	var p router.ProfileSpec
	faults := len(d.problems)
	d.pairs(key, n, "a profile", func(at string, e entry) {
		switch e.key {
		case "filters":
			p.Filters = d.filters(at, e.value)
		case "scorers":
			p.Scorers = d.scorers(at, e.value)
		case "picker":
			choiceOption(at, "", &p.Picker, router.PickerNames()...).set(d, at, e.value)
		case "epsilon":
			p.Epsilon = d.number(at, e.value, 1)
		case "max_age":
			durationOption(at, "", &p.MaxAge, time.Second, time.Hour).set(d, at, e.value)
		case "probe":
			d.probe(at, e.value, &p.Probe)
		default:
			d.fault(e.line, shown(at), "no such key", oneOf(e.key, profileKeys()))
		}
	})
	switch {
	case len(d.problems) > faults:
		return p
	case n.form == null:
		d.fault(n.line, key, "an empty profile", scorersWanted())
		return p
	}
	made, err := router.NewProfile("", p)
	if err != nil {
		what, do, _ := strings.Cut(err.Error(), "; ")
		d.fault(n.line, key, what, do)
		return p
	}
	for _, w := range made.Warnings() {
		d.warn(n.line, key, w, "")
	}
	return p
}

func scorersWanted() string {
	return "name at least one scorer under scorers: " + strings.Join(router.ScorerNames(), ", ")
}

// probe reads a time, or off for never.
func (d *decoder) probe(key string, n *node, dst *time.Duration) {
	if n.form == text && n.value == "off" {
		*dst = -1
		return
	}
	durationOption(key, "", dst, time.Second, time.Hour).set(d, key, n)
}

// filters reads a list of filters: names, or {name, max} for those with a limit.
func (d *decoder) filters(key string, n *node) []router.FilterSpec {
	if n.form != sequence {
		d.fault(n.line, key, n.form.String()+" where a list of filters is expected", "write [] for none, or [name, name]")
		return nil
	}
	out := []router.FilterSpec{}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", key, i)
		var f router.FilterSpec
		if item.form == mapping {
			d.pairs(at, item, "a filter", func(at string, e entry) {
				switch e.key {
				case "name":
					choiceOption(at, "", &f.Name, router.FilterNames()...).set(d, at, e.value)
				case "max":
					f.Max = d.number(at, e.value, math.MaxInt32)
				default:
					d.fault(e.line, shown(at), "no such key", oneOf(e.key, []string{"name", "max"}))
				}
			})
		} else {
			choiceOption(at, "", &f.Name, router.FilterNames()...).set(d, at, item)
		}
		out = append(out, f)
	}
	return out
}

func (d *decoder) scorers(key string, n *node) map[string]*float64 {
	out := make(map[string]*float64)
	d.pairs(key, n, "a mapping of scorer to weight", func(at string, e entry) {
		switch {
		case !slices.Contains(router.ScorerNames(), e.key):
			d.fault(e.line, shown(at), "no such scorer", oneOf(e.key, router.ScorerNames()))
		case e.value.form == null: // named without a weight: the scorer's own default
			out[e.key] = nil
		default:
			out[e.key] = d.number(at, e.value, math.MaxFloat64)
		}
	})
	return out
}

// number reads a finite number from 0 to most; nil where it is none.
func (d *decoder) number(key string, n *node, most float64) *float64 {
	want := "a number, 0 or more"
	if most < math.MaxFloat64 {
		want = fmt.Sprintf("a number from 0 to %g", most)
	}
	s, ok := d.scalar(key, n, want)
	if !ok {
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case n.quoted:
		d.fault(n.line, key, fmt.Sprintf("%q is text", shown(s)), "write "+want+", without quotes")
	case math.IsInf(v, 0), err == nil && (v < 0 || v > most || math.IsNaN(v)):
		d.fault(n.line, key, shown(s)+" is out of range", "write "+want)
	case err != nil:
		d.fault(n.line, key, fmt.Sprintf("%q is no number", shown(s)), "write "+want)
	default:
		return &v
	}
	return nil
}
