package report

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Kind is one of six things that a verdict can say.
type Kind string

// The kinds of verdicts.
const (
	Switch    Kind = "switch"
	Keep      Kind = "keep"
	NotEnough Kind = "not enough evidence"
	Same      Kind = "same"
	Depends   Kind = "depends on traffic"
	Void      Kind = "void"
)

// Verdict is what a comparison comes to.
type Verdict struct {
	Kind     Kind     `json:"kind"`
	Sentence string   `json:"sentence"`
	Against  string   `json:"against,omitempty"` // B
	More     []string `json:"more"`              // up to three sentences: how much, what it costs, where it is not enough
}

// Judge applies the rules in their order and returns the verdict.
func Judge(c *Comparison) Verdict {
	v := versus(c)
	if !lost(c.Control) {
		return Verdict{Kind: Void, Sentence: "Void: the control arm did not lose; do not read further.", More: []string{controlled(c.Control)}}
	}
	if v == nil {
		return because(c, nil, "no other policy was played")
	}
	if reason := refusal(c, v); reason != "" {
		return because(c, v, reason)
	}
	out := Verdict{Against: v.Other, More: more(c, v)}
	if s := depends(c); s != "" {
		out.Kind, out.Sentence = Depends, s
		return out
	}
	r := v.Primary.relative()
	switch stand(&v.Primary) {
	case better:
		out.Kind = Switch
		out.Sentence = fmt.Sprintf("Switch to %s: it carries %s more traffic within SLO than %s (CI %s).", c.Ours, sized(c, v, r, false), v.Other, span(c, v, r))
	case worse:
		out.Kind = Keep
		out.Sentence = fmt.Sprintf("Keep %s: %s is %s worse (CI %s).", v.Other, c.Ours, sized(c, v, r, true), span(c, v, r))
	case same:
		out.Kind = Same
		out.Sentence = fmt.Sprintf("Same for practical purposes (within ±1%s%%). Choose the simpler: %s.", thin, v.Other)
	default:
		out.Kind, out.Sentence = NotEnough, undecidedSentence(c, v)
	}
	return out
}

// versus is the comparison that the verdict is about: the named one, else the best of the others.
func versus(c *Comparison) *Versus {
	var best *Versus
	for i := range c.Versus {
		v := &c.Versus[i]
		if c.Against != "" {
			if v.Other == c.Against {
				return v
			}
			continue
		}
		if c.Control != nil && v.Other == c.Control.Policy {
			continue
		}
		if best == nil || !best.Primary.Base.Known() || v.Primary.Base > best.Primary.Base {
			best = v
		}
	}
	return best
}

// refusal is why there is no verdict; empty: there may be one.
func refusal(c *Comparison, v *Versus) string {
	if l := c.Live; l != nil {
		for _, reason := range []string{sharedReason(l), blocksReason(l), peekingReason(l)} {
			if reason != "" {
				return reason
			}
		}
		if len(l.Unsound) > 0 {
			return l.Unsound[0]
		}
		return unknownReason(&v.Primary)
	}
	if reason := seedsReason(v.Primary.N); reason != "" {
		return reason
	}
	if c.Primary == SustainedRate {
		for _, p := range c.Policies {
			if p.Name != c.Ours && p.Name != v.Other {
				continue
			}
			if reason := kneeReason(&p.Knee); reason != "" {
				return reason
			}
		}
	}
	return unknownReason(&v.Primary)
}

func unknownReason(d *Difference) string {
	if !d.Known() {
		return "the difference has no interval"
	}
	return ""
}

func because(c *Comparison, v *Versus, reason string) Verdict {
	out := Verdict{Kind: NotEnough, Sentence: "Not enough evidence: " + reason + ".", More: []string{}}
	if v != nil {
		out.Against, out.More = v.Other, more(c, v)
	}
	return out
}

// sized is "14 %", or the difference in its own unit where there is no base.
func sized(c *Comparison, v *Versus, r Interval, worse bool) string {
	i, u, scale := r, "%", Value(100)
	if !r.Known() {
		i, u, scale = v.Primary.Interval, c.Primary.unit(), 1
	}
	if i = i.times(scale); worse {
		i = Interval{-i.Mean, -i.High, -i.Low}
	}
	return unit(number(i.Mean, i.decimals()), u)
}

// span is "10 to 17 %".
func span(c *Comparison, v *Versus, r Interval) string {
	i, u := r.times(100), "%"
	if !r.Known() {
		i, u = v.Primary.Interval, c.Primary.unit()
	}
	d := i.decimals()
	return number(i.Low, d) + " to " + unit(number(i.High, d), u)
}

func undecidedSentence(c *Comparison, v *Versus) string {
	p := &v.Primary
	d := p.decimals()
	s := fmt.Sprintf("Not enough evidence: between %s and %s", signed(p.Low, d), unit(signed(p.High, d), c.Primary.unit()))
	if p.Decided() {
		s += ", undone by Holm's correction"
	}
	s += "."
	if size, n := settle(p, c.Live != nil && c.Live.AlwaysValid); n > 0 {
		of, cost := "seed", ""
		if c.Live != nil {
			of = "block pair"
		}
		if h := Value(n) * c.Method.RunHours; h.Known() && h >= 0.05 && h < 1e6 {
			cost = " (or " + unit(number(h, max(three(h)-1, 0)), "h") + ")"
		}
		s += fmt.Sprintf(" About %s more %ss%s would settle %s.", count(n), of, cost, unit(number(size, max(three(size)-2, 0)), c.Primary.unit()))
	}
	return s
}

// depends is the sentence of traffic that decides: ours wins on some of it and loses on other; empty: no.
func depends(c *Comparison) string {
	var wins, losses, ties, rivals []string
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		switch stand(&s.Difference) {
		case better:
			wins = append(wins, s.Name)
		case worse:
			losses = append(losses, s.Name)
			rivals = append(rivals, s.Other)
		default:
			ties = append(ties, s.Name)
		}
	}
	if len(wins) == 0 || len(losses) == 0 {
		return ""
	}
	rival := rivals[0]
	for _, r := range rivals {
		if r != rival {
			rival = "another policy"
		}
	}
	s := fmt.Sprintf("Depends on traffic: %s wins on %s, %s on %s.", c.Ours, list(wins), rival, list(losses))
	if len(ties) > 0 {
		s += " " + upper(list(ties)) + ": no difference."
	}
	return s
}

// more are the sentences after the verdict: how much and on how many seeds; what it costs; where it is
// not enough.
func more(c *Comparison, v *Versus) []string {
	out := make([]string, 0, 3)
	if s := size(c, v); s != "" {
		out = append(out, s)
	}
	if s := costs(c, v); s != "" {
		out = append(out, s)
	}
	if s := doubts(c, v); s != "" {
		out = append(out, s)
	}
	return out
}

func size(c *Comparison, v *Versus) string {
	p := &v.Primary
	if !p.Mean.Known() {
		return ""
	}
	s := fmt.Sprintf("%s against %s: %s", c.Primary.name(), v.Other, unit(signed(p.Mean, p.decimals()), c.Primary.unit()))
	if p.Known() {
		d := p.decimals()
		s += fmt.Sprintf(", 95%s%% CI [%s, %s]", thin, signed(p.Low, d), signed(p.High, d))
	}
	if n := len(p.Seeds); n > 0 {
		ahead := 0
		for _, x := range p.Seeds {
			if x > 0 {
				ahead++
			}
		}
		s += fmt.Sprintf(", ahead in %d of %s", ahead, plural(n, seedOr(c)))
	}
	if c.Live != nil && sharedReason(c.Live) != "" {
		s = "Within shared queues: " + s
	}
	return s + "."
}

func seedOr(c *Comparison) string {
	if c.Live != nil {
		return "block pair"
	}
	return "seed"
}

func costs(c *Comparison, v *Versus) string {
	var parts []string
	for _, e := range harms(v) {
		parts = append(parts, effectText(withoutP99(e)))
	}
	switch {
	case len(parts) > 0:
		return c.Ours + " costs " + list(parts) + "."
	case guarded(v):
		return "Nothing guarded is worse by more than 5" + thin + "%: TTFT p99, ITL, errors, fairness."
	}
	return ""
}

// guarded reports whether anything is known of the metrics that could be harmed.
func guarded(v *Versus) bool {
	seen := map[Metric]bool{}
	for _, e := range v.Others {
		if e.Mean.Known() && e.Base.Known() {
			seen[e.Metric] = true
		}
	}
	return seen[TTFT99] && seen[ITLMean] && seen[Errors] && seen[Fairness]
}

// effectText is "TTFT p99 +310 ms [+12, +600] (12 %)".
func effectText(e Effect) string {
	m := e.Metric.of()
	i := e.times(m.scale)
	d := i.decimals()
	s := m.name + " " + unit(signed(i.Mean, d), m.unit)
	if i.Known() {
		s += " [" + signed(i.Low, d) + ", " + signed(i.High, d) + "]"
	}
	if h := harm(&e, &m); h > 0 && h < 10 && e.Base > m.floor {
		s += " (" + percent(h, 0) + " worse)"
	}
	return s
}

// doubts names the policies against which nothing is shown, or the simulator's limit.
func doubts(c *Comparison, v *Versus) string {
	var names []string
	for i := range c.Versus {
		w := &c.Versus[i]
		if w.Other != v.Other && (c.Control == nil || w.Other != c.Control.Policy) && stand(&w.Primary) == undecided {
			names = append(names, w.Other+" ("+unit(w.Primary.bracket(), c.Primary.unit())+")")
		}
	}
	switch {
	case len(names) > 3:
		return fmt.Sprintf("Against %d others, %s first, the evidence is not enough to choose.", len(names), names[0])
	case len(names) > 0:
		return "Against " + list(names) + " the evidence is not enough to choose."
	case c.Live == nil && hasWinner(&v.Primary) && mayNotCarryOver(&v.Primary, c.Method.simulator()):
		return "It may not carry over to hardware: the simulator itself is off by " + percent(c.Method.simulator(), 1) + "."
	}
	return ""
}

func controlled(k *Control) string {
	return fmt.Sprintf("%s must lose to %s, and does not: it is behind by %s.", k.Policy, k.Against, unit(k.Behind.bracket(), "points"))
}

// upper begins a sentence with s.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
