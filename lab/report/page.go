package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
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
