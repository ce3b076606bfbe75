package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
)

// maxShadows bounds what one decision may cost.
const maxShadows = 4

func (c *Config) experimentOptions() []option {
	x := &c.Experiment
	return []option{
		armsOption(&x.Arms),
		textOption("experiment.control", "Arm that the others are compared with, that decides in blocks held back and, once a guardrail has tripped, everything; the first arm unless named.", "a policy name", &x.Control),
		choiceOption("experiment.unit", "What meets one policy as a whole: each request, each session (requests without one by themselves), or everybody within a block of time. Only blocks tell what a switch of everybody would bring.", &x.Unit, experiment.Units()...),
		durationOption("experiment.length", "Length of a block, with unit `block` or `hold_back`.", &x.Length, time.Second, 24*time.Hour),
		durationOption("experiment.washout", "Start of a block that counts for no arm: the fleet still carries the last block's work.", &x.Washout, 0, time.Hour),
		shareOption("experiment.hold_back", "Share of blocks in which the control decides everything, whatever the unit.", &x.HoldBack, 0.5),
		intOption("experiment.seed", "Salt of the assignment; another one assigns anew.", &x.Seed, 1, math.MaxInt32),
		exploreOption(&x.Explore),
		guardrailsOption(&x.Guardrails),
		shadowOption(&c.Shadow),
	}
}

// armsOption reads the arms in the order in which they stand.
func armsOption(dst *[]Arm) option {
	return option{
		key: "experiment.arms", kind: "mapping of policy name to share", def: "none",
		about: "Policies to compare and their shares, which add up to 1; names as for `policy`.",
		set: func(d *decoder, key string, n *node) {
			d.pairs(key, n, "a mapping of policy to share", func(at string, e entry) {
				if v := d.number(at, e.value, 1); v != nil {
					*dst = append(*dst, Arm{Policy: e.key, Share: *v})
				}
			})
		},
	}
}

func shareOption(key, about string, dst *float64, most float64) option {
	return option{key: key, kind: fmt.Sprintf("number, 0 to %g", most), def: fmt.Sprint(*dst), about: about, set: func(d *decoder, key string, n *node) {
		if v := d.number(key, n, most); v != nil {
			*dst = *v
		}
	}}
}

func exploreOption(dst *map[string]float64) option {
	return option{
		key: "experiment.explore", kind: fmt.Sprintf("mapping of arm to number, 0 to %g", experiment.MostExplore), def: "none",
		about: fmt.Sprintf("Share of an arm's decisions for which the endpoint is drawn from the %d cheapest, so that `presage-lab ab` can tell what the ranking is worth.", features.MostExplored),
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]float64)
			d.pairs(key, n, "a mapping of arm to share", func(at string, e entry) {
				if v := d.number(at, e.value, experiment.MostExplore); v != nil {
					out[e.key] = *v
				}
			})
			*dst = out
		},
	}
}

func guardrailsOption(dst *map[string]float64) option {
	var usual []string
	for _, g := range experiment.DefaultGuardrails() {
		usual = append(usual, fmt.Sprintf("%s: %g", g.Metric, g.Margin))
	}
	return option{
		key: "experiment.guardrails", kind: "mapping of metric to margin", def: "{" + strings.Join(usual, ", ") + "}",
		about: "When the control takes over for good: an arm is worse by more than this, beyond chance. `slo` and `errors` in shares of requests, `ttft_p90` as a factor; `{}` is none.",
		set: func(d *decoder, key string, n *node) {
			if n.form == null {
				return
			}
			out := make(map[string]float64)
			d.pairs(key, n, "a mapping of metric to margin", func(at string, e entry) {
				if !slices.Contains(experiment.Metrics(), e.key) {
					d.fault(e.line, shown(at), "no such metric", oneOf(e.key, experiment.Metrics()))
					return
				}
				if v := d.number(at, e.value, math.MaxFloat64); v != nil {
					out[e.key] = *v
				}
			})
			*dst = out
		},
	}
}

func shadowOption(dst *[]string) option {
	return option{
		key: "shadow", kind: "list of policy names", def: "none",
		about: fmt.Sprintf("Policies, at most %d, that decide 1 in %d of the same requests without effect; how often they agree and what they would have gained are metrics.", maxShadows, experiment.DefaultEvery),
		set: func(d *decoder, key string, n *node) {
			if n.form != sequence {
				d.fault(n.line, key, n.form.String()+" where a list of policies is expected", "write [name, name]")
				return
			}
			if len(n.items) > maxShadows {
				d.fault(n.line, key, fmt.Sprintf("%d policies: each costs time of every decision", len(n.items)), fmt.Sprintf("keep at most %d", maxShadows))
				return
			}
			for i, item := range n.items {
				at := fmt.Sprintf("%s[%d]", key, i)
				name, ok := d.scalar(at, item, "a policy name")
				switch {
				case !ok:
				case slices.Contains(*dst, name):
					d.fault(item.line, at, fmt.Sprintf("%q given twice", shown(name)), "keep one")
				default:
					d.lines[at] = item.line
					*dst = append(*dst, name)
				}
			}
		},
	}
}

// checkExperiment makes the experiment once, with policies that do nothing, so that what its parts
// have to do with each other is checked by the code that will run.
func (d *decoder) checkExperiment(c *Config) {
	for i, name := range c.Shadow {
		d.checkPolicy(c, fmt.Sprintf("shadow[%d]", i), name)
	}
	x := &c.Experiment
	if len(x.Arms) == 0 {
		if d.given("experiment") && !d.faulty("experiment.arms") {
			d.fault(d.line("experiment"), "experiment.arms", "missing: nothing to compare", "write arms: {policy: share, policy: share}")
		}
		return
	}
	for _, a := range x.Arms {
		d.checkPolicy(c, "experiment.arms."+a.Policy, a.Policy)
	}
	isArm := func(name string) bool {
		return slices.ContainsFunc(x.Arms, func(a Arm) bool { return a.Policy == name })
	}
	switch {
	case x.Control == "":
		x.Control = x.Arms[0].Policy
	case !isArm(x.Control):
		d.fault(d.line("experiment.control"), "experiment.control", fmt.Sprintf("%q is no arm", shown(x.Control)), oneOf(x.Control, armNames(x.Arms)))
	}
	for _, name := range slices.Sorted(maps.Keys(x.Explore)) {
		if at := "experiment.explore." + name; !isArm(name) {
			d.fault(d.line(at), at, "no such arm", oneOf(name, armNames(x.Arms)))
		}
	}
	if d.given("policy") && !isArm(c.Policy) {
		d.warn(d.line("policy"), "policy", c.Policy+" is not used while there is an experiment without it", "")
	}
	if d.faulty("experiment") {
		return
	}
	o, err := x.Options(func(string) (router.Policy, error) { return idle{}, nil })
	if err == nil {
		_, err = experiment.New(o)
	}
	if err != nil {
		key, what, _ := strings.Cut(err.Error(), ": ")
		what, do, _ := strings.Cut(what, "; ")
		key = "experiment." + key
		d.fault(d.line(key), key, what, do)
	}
}

// faulty reports whether a key, or one below it, was refused.
func (d *decoder) faulty(key string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == key || strings.HasPrefix(p.Key, key+".") })
}

func armNames(arms []Arm) []string {
	var names []string
	for _, a := range arms {
		names = append(names, a.Policy)
	}
	return names
}

// Options describe the experiment to the code that runs it; policy makes each arm's own policy.
func (x *Experiment) Options(policy func(name string) (router.Policy, error)) (experiment.Options, error) {
	o := experiment.Options{
		Control: x.Control, Unit: experiment.Unit(slices.Index(experiment.Units(), x.Unit)),
		Length: x.Length, Washout: x.Washout, HoldBack: x.HoldBack, Seed: uint64(x.Seed),
	}
	for _, a := range x.Arms {
		p, err := policy(a.Policy)
		if share := x.Explore[a.Policy]; err == nil && share > 0 {
			p, err = experiment.NewExplorer(p, share)
		}
		if err != nil {
			return o, err
		}
		o.Arms = append(o.Arms, experiment.Arm{Name: a.Policy, Share: a.Share, Policy: p})
	}
	if x.Guardrails == nil {
		o.Guardrails = experiment.DefaultGuardrails()
	}
	for _, name := range slices.Sorted(maps.Keys(x.Guardrails)) {
		o.Guardrails = append(o.Guardrails, experiment.Guardrail{Metric: experiment.Metric(slices.Index(experiment.Metrics(), name)), Margin: x.Guardrails[name]})
	}
	return o, nil
}

// idle stands for a policy while an experiment is checked.
type idle struct{}

func (idle) Name() string                                { return "idle" }
func (idle) Route(*router.Query, *router.Decision) error { return nil }
