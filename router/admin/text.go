package admin

import (
	"fmt"
	"io"
	"strings"

	"github.com/presage-router/presage/router"
)

// TextOptions say how a decision is printed.
type TextOptions struct {
	All   bool // every candidate, not the best eight
	ASCII bool // for terminals without UTF-8
}

// Text writes the decision as an operator reads it: what happened, why this endpoint, and the
// candidates, best first.
func (x *Explained) Text(w io.Writer, o TextOptions) error {
	var b strings.Builder
	b.WriteString(x.ID + "  " + x.At.Format("15:04:05.000") + "  -> " + x.Endpoint)
	if x.Outcome != nil && x.Outcome.Served != x.Endpoint {
		b.WriteString(", served by " + x.Outcome.Served)
	}
	b.WriteString("  " + x.verdict() + "\n")
	if x.Why != "" {
		b.WriteString("why this endpoint   " + x.Why + "\n")
	}
	fmt.Fprintf(&b, "policy              %s, reason %s\n", x.policy(), x.Reason)
	b.WriteString("request             " + x.request() + "\n")
	if f := x.forecast(); f != "" {
		b.WriteString("foretold            " + f + "\n")
	}
	x.table(&b, o.All)
	s := b.String()
	if o.ASCII {
		s = strings.NewReplacer("✕", "x", "●", "ok", "…", "...", "·", "|").Replace(s)
	}
	_, err := io.WriteString(w, s)
	return err
}

// verdict says how the request ended, in words and figures.
func (x *Explained) verdict() string {
	o := x.Outcome
	if o == nil {
		return "… still running"
	}
	var s string
	switch {
	case o.Cause != "complete":
		s = "✕ " + strings.ReplaceAll(o.Cause, "_", " ")
		if o.Status != 0 {
			s += fmt.Sprintf(" (status %d)", o.Status)
		}
	case len(o.Missed) > 0:
		s = "✕ missed " + strings.ToUpper(strings.Join(o.Missed, ", "))
	case x.SLO != Levels{}:
		s = "● in SLO"
	default:
		s = "● complete"
	}
	var parts []string
	for _, p := range []struct {
		name          string
		actual, limit float64
	}{{"TTFT", o.Took.TTFT, x.SLO.TTFT}, {"ITL", o.Took.ITL, x.SLO.ITL}, {"E2E", o.Took.E2E, x.SLO.E2E}} {
		if p.actual <= 0 {
			continue
		}
		part := p.name + " " + millis(p.actual)
		if p.limit > 0 {
			part += " of " + millis(p.limit)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		s += "  (" + strings.Join(parts, ", ") + ")"
	}
	return s
}

// forecast says what was foretold of the picked endpoint and, after the end, how far off it was.
func (x *Explained) forecast() string {
	if x.Foretold == nil {
		return ""
	}
	var errors Errors
	if x.Outcome != nil && x.Outcome.Errors != nil {
		errors = *x.Outcome.Errors
	}
	var parts []string
	for _, t := range []struct {
		name string
		q    *Quantiles
		e    *Error
	}{{"TTFT", x.Foretold.TTFT, errors.TTFT}, {"ITL", x.Foretold.ITL, errors.ITL}} {
		if t.q == nil {
			continue
		}
		part := fmt.Sprintf("%s %s (p90 %s, p99 %s)", t.name, millis(t.q.P50), millis(t.q.P90), millis(t.q.P99))
		if t.e != nil {
			part += fmt.Sprintf(", actual %s: %s", millis(t.e.Actual), t.e.words())
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// words say how far off a forecast was.
func (e *Error) words() string {
	off := fmt.Sprintf("%+.0f %%", 100*(e.Ratio-1))
	switch e.Within {
	case "p50", "p90", "p99":
		return off + ", within " + e.Within
	}
	return off + ", beyond p99"
}

func millis(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return router.Amount(ms, "ms")
}

func (x *Explained) policy() string {
	s := x.Policy
	if x.Failed != "" {
		s = x.Failed + " failed (" + x.Failure + "), decided by " + x.Policy
	}
	if x.Arm != "" {
		s += " in arm " + x.Arm
	}
	return s
}

func (x *Explained) request() string {
	prompt, note := x.Prompt, ""
	if o := x.Outcome; o != nil {
		prompt = o.Prompt
		if o.Cached != nil {
			note += ", " + router.Amount(float64(*o.Cached), "") + " of them cached"
		}
		if o.Output != nil {
			note += ", " + router.Amount(float64(*o.Output), "") + " tokens out"
		}
	}
	s := router.Amount(float64(prompt), "") + " prompt tokens" + note
	if x.Model != "" {
		s += ", model " + x.Model
	}
	if x.Adapter != "" && x.Adapter != x.Model {
		s += ", adapter " + x.Adapter
	}
	return s
}
