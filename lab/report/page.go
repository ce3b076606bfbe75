package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// page is what the template shows.
type page struct {
	Title, CSP string
	CSS        template.CSS
	JS, Data   template.JS

	Scope   string
	Verdict Verdict
	Ours    string
	Rows    []line
	Rates   bool // some sustained rate is known
	Note    string

	Curve     *figure
	CurveNote string
	Legend    []entry
	CurveRows []Curve

	Versus     *figure
	VersusNote string
	Effects    []effectLine
	Scenarios  *figure

	Captured      *figure
	CapturedNote  string
	Reliability   *figure
	Reliable      []string
	Classes       []split
	ClassesNote   string
	Live          *livePage
	Refusals      []string
	Method        Method
	Seeds         string
	Intervals     string
	Simulator     string
	Timelines     []timelinePage
	TimelinesNote string
}

type line struct{ Name, Tuning, Sustained, Attained, TTFT, ITL, Cached, CV, Sign, Chip, Kind string }

type entry struct {
	Class int
	Name  string
}

type effectLine struct {
	Name    string
	Figures []effectFigure
}

type effectFigure struct{ Metric, Figure, Doubt string }

type split struct {
	By     string
	Figure figure
}

type timelinePage struct {
	Title   string
	Load    figure
	More    int
	Weights *figure
}

// Write writes the report. Its errors are those of w.
func Write(w io.Writer, c *Comparison) error {
	p, err := newPage(c)
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, p)
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"num": func(v Value) string { return number(v, three(v)) },
}).Parse(pageHTML))

// embedded is what the file says of itself.
type embedded struct {
	Comparison *Comparison `json:"comparison"`
	Verdict    *Verdict    `json:"verdict"`
}

func newPage(c *Comparison) (*page, error) {
	v := Judge(c)
	data, err := json.Marshal(embedded{c, &v}) // escapes <, > and &: nothing can close its element
	if err != nil {
		return nil, fmt.Errorf("cannot write the data of the report: %w", err)
	}
	p := &page{
		Title: "Presage: " + clean(c.Scope.Scenario), CSP: policyOf(pageCSS, pageJS), CSS: template.CSS(pageCSS), //nolint:gosec // embedded
		JS: template.JS(pageJS), Data: template.JS(data), //nolint:gosec // embedded; escaped JSON
		Scope: scope(c), Verdict: v, Ours: c.Ours, Refusals: refusals(c, &v), Method: c.Method,
		Seeds: seeds(c.Method.Seeds), Intervals: intervals(c), Simulator: simulator(c),
	}
	p.table(c, &v)
	p.curve(c)
	p.differences(c)
	p.captured(c)
	p.reliability(c)
	p.classes(c)
	p.timelines(c)
	if c.Live != nil {
		p.Live = newLive(c)
	}
	return p, nil
}

// policyOf allows the page's own style and script, by their hashes, and nothing else.
func policyOf(css, js string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; img-src data:; style-src " + hash(css) + "; script-src " + hash(js) + "; base-uri 'none'; form-action 'none'"
}

func scope(c *Comparison) string {
	s := &c.Scope
	var parts []string
	if s.Scenario != "" {
		what := "scenario "
		if c.Live != nil {
			what = "experiment "
		}
		parts = append(parts, what+s.Scenario)
	}
	if len(s.Endpoints) > 0 {
		parts = append(parts, strings.Join(s.Endpoints, " + "))
	}
	if c.Live != nil {
		if s.Blocks > 0 {
			parts = append(parts, plural(s.Blocks, "block"))
		}
	} else {
		parts = append(parts, plural(s.Seeds, "seed")+", same arrivals for every policy")
	}
	if s.Requests > 0 {
		parts = append(parts, plural(s.Requests, "request"))
	}
	if c.Live != nil {
		return strings.Join(append(parts, "live"), " · ")
	}
	return strings.Join(append(parts, "simulated, not measured on GPUs"), " · ")
}

// chips are the signs and words of standings, seen from ours.
func chip(s standing, ours string) (sign, text, kind string) {
	switch s {
	case better:
		return "▲", ours + " better", "better"
	case worse:
		return "▼", ours + " worse", "worse"
	case same:
		return "=", "same within 1" + thin + "%", "same"
	case tooFew:
		return "◇", "too few seeds", "undecided"
	default:
		return "◇", "not enough evidence", "undecided"
	}
}

func (p *page) table(c *Comparison, v *Verdict) {
	for i := range c.Policies {
		q := &c.Policies[i]
		l := line{
			Name: q.Name, Tuning: tuning(q), Sustained: number(q.Sustained.Mean, q.Sustained.decimals()), Attained: percent(q.Attained, 1),
			TTFT: number(q.TTFT90, 2), ITL: number(1000*q.ITL, 1), Cached: percent(q.Cached, 0), CV: number(q.LoadCV, 2),
		}
		if q.Knee.Searched && !q.Knee.Reached && q.Sustained.Mean.Known() {
			l.Sustained = "> " + l.Sustained
		}
		switch d := c.against(q.Name); {
		case v.Kind == Void:
			l.Sign, l.Chip, l.Kind = "✕", "void", "worse"
		case q.Name == c.Ours:
			l.Sign, l.Chip, l.Kind = "○", "held against the others", "reference"
		case c.Control != nil && q.Name == c.Control.Policy:
			l.Sign, l.Chip, l.Kind = "✓", "control, lost", "reference"
		case d == nil:
			l.Sign, l.Chip, l.Kind = "◇", "not compared", "undecided"
		case c.Live != nil && refusal(c, d) != "":
			l.Sign, l.Chip, l.Kind = "◇", "no verdict", "undecided"
		default:
			l.Sign, l.Chip, l.Kind = chip(stand(&d.Primary), c.Ours)
		}
		p.Rows = append(p.Rows, l)
		p.Rates = p.Rates || q.Sustained.Mean.Known()
	}
	for i := range c.Policies {
		if q := &c.Policies[i]; q.Name == c.Ours && q.Rate.Known() {
			p.Note = "In SLO to load CV at " + unit(number(q.Rate, three(q.Rate)), "req/s") + " offered."
		}
	}
}

// against is ours minus the named policy; nil: they were not compared.
func (c *Comparison) against(name string) *Versus {
	for i := range c.Versus {
		if c.Versus[i].Other == name {
			return &c.Versus[i]
		}
	}
	return nil
}

func (p *page) curve(c *Comparison) {
	k := c.curves()
	if len(k) == 0 {
		if p.CurveNote = "No rates were swept, so there is no curve. presage-lab compare --sweep draws one."; c.Live != nil {
			p.CurveNote = "Live traffic has the rate it has: only simulated comparisons sweep it."
		}
		return
	}
	f := rateChart(c, k)
	p.Curve, p.CurveRows = &f, k
	for _, k := range k {
		p.Legend = append(p.Legend, entry{c.style(k.Policy), k.Policy})
	}
}

func (p *page) differences(c *Comparison) {
	if len(c.Versus) == 0 {
		p.VersusNote = "No other policy was played."
		return
	}
	var rows []row
	for i := range c.Versus {
		v := &c.Versus[i]
		rows = append(rows, row{Name: v.Other, D: v.Primary, State: stand(&v.Primary), Figure: v.Primary.bracket()})
		l := effectLine{Name: v.Other}
		for _, e := range v.Others {
			e := withoutP99(e)
			m := e.Metric.of()
			f := effectFigure{Metric: m.name, Figure: unit(e.times(m.scale).bracket(), m.unit)}
			if c.Live == nil && m.off != nil && mayNotCarryOver(&e.Difference, m.off(&c.Method)) {
				f.Doubt = "may not carry over to hardware"
			}
			l.Figures = append(l.Figures, f)
		}
		if len(l.Figures) > 0 {
			p.Effects = append(p.Effects, l)
		}
	}
	f := forest(rows, c.Primary.unit())
	p.Versus = &f
	p.VersusNote = c.Primary.name() + ", " + c.Primary.unit() + " · bar: 95" + thin + "% CI · dot: one " + seedOr(c) + " · hollow: undecided"
	if len(c.Scenarios) > 0 {
		f := forest(slice(c.Scenarios), c.Primary.unit())
		p.Scenarios = &f
	}
}

func slice(s []Slice) []row {
	var rows []row
	for i := range s {
		rows = append(rows, row{Name: s[i].Name, D: s[i].Difference, State: stand(&s[i].Difference), Figure: s[i].bracket()})
	}
	return rows
}

func (p *page) captured(c *Comparison) {
	switch k := c.Captured; {
	case k == nil && c.Live != nil:
		p.CapturedNote = "What was possible is not known of live traffic: its requests cannot be played again."
	case k == nil:
		p.CapturedNote = "No reference with knowledge of the future was played, so what is possible is not known."
	case capturedReason(k) != "":
		p.CapturedNote = capturedReason(k)
	default:
		f := bars(k, c.Ours)
		p.Captured = &f
		p.CapturedNote = "0 = " + k.Baseline + ", 100 = " + k.Reference + ", " + unit(number(k.Possible, 1), "points") + " within SLO apart" + gaps(k, c.Ours)
	}
}

// gaps says what lies between ours and what foresees.
func gaps(k *Captured, ours string) string {
	mine, best := Unknown(), Unknown()
	name := ""
	for _, b := range k.Bars {
		switch {
		case b.Name == ours:
			mine = b.Share.Mean
		case b.Foresees && b.Name != k.Reference && b.Share.Mean <= 1 && (!best.Known() || b.Share.Mean > best):
			best, name = b.Share.Mean, b.Name
		}
	}
	if !mine.Known() || !best.Known() {
		return "."
	}
	s := ". " + upper(name) + " minus " + ours + ", " + unit(number(100*(best-mine), 0), "points") + " of 100, is what better forecasts can still win"
	if rest := 1 - best; rest > 0.005 {
		s += "; the other " + number(100*rest, 0) + " need knowledge of later arrivals"
	}
	return s + "."
}

func (p *page) reliability(c *Comparison) {
	r := c.Reliability
	if r == nil || len(r.Curves) == 0 {
		p.Reliable = []string{"No run was watched from inside, so forecasts were not held against what happened."}
		if c.Live != nil {
			p.Reliable = []string{"Of live traffic only forecasts of chosen endpoints can be checked: presage_forecast_covered_total counts them."}
		}
		return
	}
	f := reliability(r)
	p.Reliability = &f
	for _, k := range r.Curves {
		where := "on the chosen endpoint"
		if k.Random {
			where = "on an endpoint drawn at random"
		}
		var q, at []string
		for i := range k.Quantiles {
			if i < len(k.Observed) {
				q = append(q, "p"+number(100*k.Quantiles[i], 0))
				at = append(at, number(100*k.Observed[i], 1))
			}
		}
		p.Reliable = append(p.Reliable, fmt.Sprintf("%s %s: %s of %s at or under %s.", k.Target, where, unit(list(at), "%"), plural(k.N, "request"), list(q)))
	}
	if s := calibrated(r); s != "" {
		p.Reliable = append(p.Reliable, s)
	}
	if r.Lived.Known() {
		p.Reliable = append(p.Reliable, percent(r.Lived, 1)+" of all requests came at or under the p90 foretold of them.")
	}
	if s := flattery(r); s != "" {
		p.Reliable = append(p.Reliable, s)
	}
	p.Reliable = append(p.Reliable, fmt.Sprintf("One run of %s at load %s, seed %d.", r.Policy, factor(r.Load), r.Seed))
}

// calibrated says where the foretold p90 does not hold for 90 %, beyond what so few requests scatter.
func calibrated(r *Reliability) string {
	const p90 = 0.9
	var off []string
	known := false
	for _, k := range r.Curves {
		for i := range min(len(k.Quantiles), len(k.Observed)) {
			if k.Quantiles[i] != p90 || !k.Observed[i].Known() || k.N <= 0 {
				continue
			}
			known = true
			where := "chosen endpoints"
			if k.Random {
				where = "endpoints drawn at random"
			}
			switch gap, doubt := float64(k.Observed[i])-p90, 1.96*math.Sqrt(p90*(1-p90)/float64(k.N)); {
			case gap < -doubt:
				off = append(off, "too low on "+where)
			case gap > doubt:
				off = append(off, "too high on "+where)
			}
		}
	}
	switch {
	case !known:
		return ""
	case len(off) == 0:
		return "The foretold p90 holds, within what so many requests scatter."
	}
	return "The foretold p90 is " + list(off) + "."
}

// flattery says whether the forecasts of chosen endpoints are too good, as choosing the lowest of many
// noisy ones makes them: by the largest gap between the curves that is above its own noise.
func flattery(r *Reliability) string {
	most, compared := Value(0), false
	for _, a := range r.Curves {
		for _, b := range r.Curves {
			if !a.Random || b.Random || a.Target != b.Target || a.N == 0 || b.N == 0 {
				continue
			}
			compared = true
			for i := range min(len(a.Observed), len(b.Observed)) {
				p, q := float64(a.Observed[i]), float64(b.Observed[i])
				doubt := 1.96 * math.Sqrt(max(p*(1-p), 0)/float64(a.N)+max(q*(1-q), 0)/float64(b.N))
				if gap := p - q; gap > doubt {
					most = max(most, Value(gap))
				}
			}
		}
	}
	switch {
	case !compared:
		return ""
	case most == 0:
		return "Choosing the lowest of many noisy forecasts can make the chosen one look too good; no such gap is shown here."
	}
	return "Choosing the lowest of many noisy forecasts makes the chosen one look too good: by " + unit(number(100*most, 0), "points") + " here where the lines are farthest apart."
}

func (p *page) classes(c *Comparison) {
	by := map[string][]Slice{}
	var order []string
	tests := 0
	for _, s := range c.Classes {
		if s.Requests < leastRequests {
			continue
		}
		key := s.By
		if s.Other != "" {
			key += ", against " + s.Other
		}
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], s)
		tests++
	}
	if tests == 0 {
		p.ClassesNote = "One class of requests, or too few of each: nothing to split."
		return
	}
	for _, key := range order {
		p.Classes = append(p.Classes, split{key, forest(slice(by[key]), c.Primary.unit())})
	}
	p.ClassesNote = fmt.Sprintf("Exploratory: %s, Holm-corrected. Points within SLO at equal arrivals. None of it heads a verdict.", plural(tests, "comparison"))
}

func (p *page) timelines(c *Comparison) {
	for i := range c.Timelines {
		t := &c.Timelines[i]
		if len(t.Engines) == 0 || len(t.Times) < 2 {
			continue
		}
		q := timelinePage{Title: fmt.Sprintf("%s at load %s, seed %d", t.Policy, factor(t.Load), t.Seed), Load: loadChart(t), More: max(len(t.Engines)-mostRows, 0)}
		if len(t.Weights) > 0 {
			f := weightChart(t)
			q.Weights = &f
		}
		p.Timelines = append(p.Timelines, q)
	}
	if len(p.Timelines) == 0 {
		if p.TimelinesNote = "No run was watched from inside."; c.Live != nil {
			p.TimelinesNote = "Live traffic is not drawn here."
		}
	}
}

// seeds are "1 to 8", or the list where it has holes.
func seeds(s []uint64) string {
	if len(s) == 0 {
		return ""
	}
	gaps := false
	var names []string
	for i, v := range s {
		gaps = gaps || i > 0 && v != s[i-1]+1
		if i < 40 {
			names = append(names, fmt.Sprint(v))
		}
	}
	switch {
	case len(s) == 1:
		return names[0]
	case !gaps:
		return fmt.Sprintf("%d to %d", s[0], s[len(s)-1])
	case len(s) > 40:
		return strings.Join(names, ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func intervals(c *Comparison) string {
	if c.Live != nil {
		if c.Live.AlwaysValid {
			return "Intervals: confidence sequences over block pairs. They may be read at any time."
		}
		return "Intervals: for one look at the planned end."
	}
	tests := 0
	for i := range c.Versus {
		if c.Versus[i].Primary.P.Known() {
			tests++
		}
	}
	s := "Intervals: Student's t of paired differences over seeds"
	if tests > 1 {
		s += ", Holm-corrected over " + plural(tests, "comparison")
	}
	return s + "."
}

func simulator(c *Comparison) string {
	m := &c.Method
	if c.Live != nil || !m.TTFTOff.Known() || !m.ITLOff.Known() {
		return ""
	}
	return "Simulator error against measured vLLM: TTFT " + percent(m.TTFTOff, 1) + ", ITL " + percent(m.ITLOff, 1) + ". Differences smaller than that may not carry over to hardware."
}
