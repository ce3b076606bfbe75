package router

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Verdict is what the sentence about a decision is made of: plain values that outlive its query.
type Verdict struct {
	Reason     Reason
	Unit       string  // of Gain and Loss, as in [Explanation]
	Failed     string  // policy that could not decide, with ByFallback
	Failure    string  // why it could not
	Prompt     int     // tokens of the request
	Cached     int     // of these, believed to be held by the winner
	Candidates int     // endpoints that could have won
	Propensity float64 // of the pick
	First      bool    // the winner had the best total
	Runner     string  // the best of the others; empty: none
	Term       string  // the term that decided; empty: none did
	Gain       float64 // what the term that decided is worth against the runner-up
	Against    string  // the term that speaks most for the runner-up; empty: none
	Loss       float64 // what that one costs
	Behind     float64 // by how much the winner's total is worse than the best, where it is
}

// Verdict compares the picked endpoint with the runner-up. Rows without a filter's name count as
// candidates; name tells the names of rows. The caller fills in what it knows of the request.
func (e *Explanation) Verdict(picked int, name func(row int) string) Verdict {
	v := Verdict{Reason: e.Reason, Unit: e.Unit, First: true}
	if picked < 0 || picked >= len(e.Filtered) {
		return v
	}
	runner := -1
	for i, out := range e.Filtered {
		if out != "" {
			continue
		}
		v.Candidates++
		if i != picked && (runner < 0 || e.better(i, runner)) {
			runner = i
		}
	}
	if runner < 0 {
		return v
	}
	v.Runner = name(runner)
	v.First = !e.better(runner, picked)
	if !v.First {
		v.Behind = float64(e.gain(e.Totals[runner], e.Totals[picked]))
	}
	if gain, t := e.decisive(picked, runner); gain > 0 && accounts(e.Terms[t], e.Reason) {
		v.Term, v.Gain = e.Terms[t], float64(gain)
		if loss, t := e.worst(picked, runner); loss > 0 {
			v.Against, v.Loss = e.Terms[t], float64(loss)
		}
	}
	return v
}

// worst returns the term by which a loses most against b, and how much; not positive: in none.
func (e *Explanation) worst(a, b int) (loss float32, term int) {
	ra, rb := e.Row(a), e.Row(b)
	for t := range ra {
		if l := e.gain(rb[t], ra[t]); l > loss {
			loss, term = l, t
		}
	}
	return loss, term
}

// Sentence says in one line why the winner won. There is one template per kind of reason; nothing
// is composed freely.
func (v Verdict) Sentence() string {
	switch v.Reason {
	case ByCache:
		return fmt.Sprintf("%d %% of %s prompt tokens cached", v.cachedShare(), thousands(v.Prompt)) + v.margin() + v.tie()
	case ByQueue:
		return v.sooner() + v.margin()
	case ByMemory:
		if v.Term == "kv wait" {
			return "no shortage of KV blocks" + v.margin()
		}
		return "more KV cache free" + v.margin()
	case ByAdapter:
		if v.Term == "adapter" {
			return "a slot for its adapter" + v.margin()
		}
		return "its adapter is at hand" + v.margin()
	case BySpeed:
		return "faster hardware" + v.margin()
	case ByHeadroom:
		if v.Term == "slo" {
			return "likelier to meet its SLO" + v.margin()
		}
		return "more room within the ITL SLO" + v.margin()
	case BySession:
		return "the session's endpoint" + v.margin()
	case ByRotation:
		return fmt.Sprintf("its turn among %d ready endpoints", v.Candidates)
	case ByTie:
		return "equal to " + v.Runner + "; drawn among equals"
	case ByDraw, ByExplore:
		return v.drawn()
	case ByFallback:
		return fmt.Sprintf("%s could not decide (%s): fewest requests in flight", v.Failed, v.Failure)
	case OnlyOne:
		return "the only candidate"
	case NoReason:
	}
	return "best in total" + v.margin()
}

// sooner names what the winner has less of, where terms are times.
func (v Verdict) sooner() string {
	switch {
	case v.Unit != "ms": // decode of Dynamo is blocks
	case v.Term == "decode":
		return "fastest stream foretold"
	case v.Term == stall:
		return "fewest streams stalled by its prefill"
	}
	return "less work ahead"
}

// tie tells that another endpoint was cheaper, but not by enough to be sure.
func (v Verdict) tie() string {
	if v.First || v.Runner == "" || v.Unit != "ms" {
		return ""
	}
	return "; " + v.Runner + " is foretold " + Amount(v.Behind, v.Unit) + " better, too little to tell"
}

// margin is the second half of sentences about a gain.
func (v Verdict) margin() string {
	if v.Gain <= 0 || v.Runner == "" {
		return ""
	}
	s := ": " + Amount(v.Gain, v.Unit) + " better than " + v.Runner
	if v.Against != "" {
		s += "; " + burden(v.Against) + " costs " + Amount(v.Loss, v.Unit)
		if v.Loss <= v.Gain {
			s += " of that"
		}
	}
	return s
}

// burden names what speaks against a winner.
func burden(term string) string {
	switch term {
	case "prefix":
		return "its colder cache"
	case "kv":
		return "its fuller KV cache"
	case "requests", "running":
		return "its larger batch"
	case "tokens":
		return "its prefill backlog"
	case ownPrompt:
		return "computing the prompt"
	case "adapter":
		return "waiting for a slot of its adapter"
	case "kv wait":
		return "its shortage of KV blocks"
	case "decode":
		return "its slower stream"
	case stall:
		return "stalling its streams"
	case "slo":
		return "its risk of missing the SLO"
	}
	return "its " + term
}

func (v Verdict) drawn() string {
	s := "drawn with probability " + Percent(v.Propensity)
	if v.Reason == ByExplore {
		s = "exploratory pick"
	}
	if v.First || v.Runner == "" {
		return s
	}
	return s + "; " + v.Runner + " ranked first"
}

func (v Verdict) cachedShare() int {
	if v.Prompt <= 0 {
		return 0
	}
	return 100 * v.Cached / v.Prompt
}

// Amount formats a total or a term of an explanation with its unit, as operators read it.
func Amount(x float64, unit string) string {
	switch unit {
	case unitScore:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case "s":
		return strconv.FormatFloat(x, 'f', 3, 64) + " s"
	case "":
		return thousands(int(math.Round(x)))
	}
	n := int(math.Round(x))
	if n == 1 && unit != "ms" {
		unit = strings.TrimSuffix(unit, "s")
	}
	return thousands(n) + " " + unit
}

// Percent formats a probability or share as operators read it: one decimal where it matters.
func Percent(p float64) string {
	switch {
	case p >= 0.1 && p < 0.9995, p == 1, p == 0:
		return strconv.FormatFloat(100*p, 'f', 0, 64) + " %"
	case p >= 0.9995:
		return "100 %"
	}
	return strconv.FormatFloat(100*p, 'f', 1, 64) + " %"
}

// thousands formats an integer with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
