package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The closed set. Names are n1, n2, … in these tests.
var patterns = map[Kind]*regexp.Regexp{
	Switch:  regexp.MustCompile(`^Switch to n\d+: it carries [\d.,]+ (%|req/s|points) more traffic within SLO than n\d+ \(CI [\d.,]+ to [\d.,]+ (%|req/s|points)\)\.$`),
	Keep:    regexp.MustCompile(`^Keep n\d+: n\d+ is [\d.,]+ (%|req/s|points) worse \(CI −?[\d.,]+ to −?[\d.,]+ (%|req/s|points)\)\.$`),
	Same:    regexp.MustCompile(`^Same for practical purposes \(within ±1 %\)\. Choose the simpler: n\d+\.$`),
	Depends: regexp.MustCompile(`^Depends on traffic: n\d+ wins on n\d+((, n\d+)* and n\d+)?, (n\d+|another policy) on n\d+((, n\d+)* and n\d+)?\.( N\d+((, n\d+)* and n\d+)?: no difference\.)?$`),
	Void:    regexp.MustCompile(`^Void: the control arm did not lose; do not read further\.$`),
	NotEnough: regexp.MustCompile(`^Not enough evidence: (between [−+]?[\d.,]+ and [−+]?[\d.,]+ (req/s|points)(, undone by Holm's correction)?\.( About [\d,. M]+ more (seed|block pair)s?( \(or [\d.,]+ h\))? would settle [\d.,]+ (req/s|points)\.)?` +
		`|\d+ of (5 seeds|12 block pairs) needed\.|sustained rate not reached: raise the swept rates\.|no rates were swept, so no sustained rate is known\.|no other policy was played\.` +
		`|the difference has no interval\.|arrivals differ by [\d.,–]+( %)? between arms\.|A/A rejects at 5 % \(p (= 0\.0\d+|< 0\.001)\)\.|blocks carry over into each other \(p (= 0\.0\d+|< 0\.001)\)\.` +
		`|split by \w*, the arms share queues\.|the intervals hold for one look only, at the planned end\.)$`),
}

// mostly is true seven times of eight.
func mostly(t *rapid.T, name string) bool {
	return rapid.SampledFrom([]bool{true, true, true, true, true, true, true, false}).Draw(t, name)
}

func value(t *rapid.T, name string) Value {
	switch rapid.IntRange(0, 9).Draw(t, name+" kind") {
	case 0:
		return Unknown()
	case 1:
		return Value(math.Inf(1))
	case 2:
		return Value(rapid.Float64().Draw(t, name))
	case 3:
		return 0
	}
	return Value(rapid.Float64Range(-100, 100).Draw(t, name))
}

// someP is a p-value, or none.
func someP(t *rapid.T) Value {
	return rapid.SampledFrom([]Value{Unknown(), 0, .001, .04, .2, 1}).Draw(t, "p")
}

func randomDifference(t *rapid.T) Difference {
	mean := rapid.SampledFrom([]float64{-12, -5, -.3, 0, .2, 1, 6, 20}).Draw(t, "mean") + rapid.Float64Range(-1, 1).Draw(t, "more")
	half := rapid.SampledFrom([]float64{0, .1, 1, 8}).Draw(t, "half")
	d := interval(mean, half, rapid.SampledFrom([]float64{0, .01, 40, 100, 1000}).Draw(t, "base"), rapid.SampledFrom([]int{0, 4, 5, 9, 10, 30, 30, 30}).Draw(t, "n"))
	d.P = rapid.SampledFrom([]Value{Unknown(), .001, .2}).Draw(t, "p")
	if !mostly(t, "usual") {
		d = Difference{Interval{value(t, "mean"), value(t, "low"), value(t, "high")}, value(t, "base"), value(t, "sd"), []Value{value(t, "seed")}, d.N, someP(t), nil, nil}
	}
	if !mostly(t, "plain") {
		d.Relative, d.All = &Interval{value(t, "rm"), value(t, "rl"), value(t, "rh")}, &Interval{value(t, "am"), value(t, "al"), value(t, "ah")}
	}
	return d
}

func random(t *rapid.T, name func(int) string) *Comparison {
	n := rapid.SampledFrom([]int{0, 1, 2, 2, 2, 3, 3, 5}).Draw(t, "policies")
	c := &Comparison{
		Scope: Scope{Scenario: name(90), Endpoints: []string{name(91)}, Seeds: rapid.IntRange(0, 20).Draw(t, "seeds"), Planned: 9, Done: rapid.IntRange(0, 9).Draw(t, "done")},
		Ours:  name(0), Primary: rapid.SampledFrom([]Primary{SustainedRate, Attainment}).Draw(t, "primary"),
		Method: Method{Command: name(92), Version: name(93), TTFTOff: value(t, "off"), ITLOff: SimulatorITL, RunHours: value(t, "hours"), Hashes: []Hash{{name(94), name(95)}}, Seeds: []uint64{1, 2, 4}},
	}
	for i := range n {
		c.Policies = append(c.Policies, Policy{
			Name: name(i), Sustained: Interval{value(t, "k"), value(t, "kl"), value(t, "kh")}, Knee: Knee{mostly(t, "s"), mostly(t, "r"), value(t, "g")},
			Attained: value(t, "a"), Rate: value(t, "rate"), TTFT90: value(t, "t"), ITL: value(t, "i"), Cached: value(t, "c"), LoadCV: value(t, "cv"), Tuning: name(i + 30),
		})
		k := Curve{Policy: name(i)}
		for range rapid.IntRange(0, 4).Draw(t, "points") {
			k.Points = append(k.Points, Rate{value(t, "x"), value(t, "y")})
		}
		c.Curves = append(c.Curves, k)
		if i > 0 {
			v := Versus{Other: name(i), Primary: randomDifference(t)}
			for _, m := range []Metric{TTFT99, ITLMean, Errors, Fairness, Metric(name(50))} {
				v.Others = append(v.Others, Effect{m, randomDifference(t)})
			}
			c.Versus = append(c.Versus, v)
			c.Classes = append(c.Classes, Slice{name(60), name(61 + i), name(i), randomDifference(t), rapid.IntRange(0, 1000).Draw(t, "requests")})
		}
	}
	for i := range rapid.SampledFrom([]int{0, 0, 4, 5}).Draw(t, "scenarios") {
		c.Scenarios = append(c.Scenarios, Slice{"scenario", name(70 + i), name(1 + i/2), randomDifference(t), 9999})
	}
	if mostly(t, "control") {
		c.Control = &Control{name(7), name(0), value(t, "load"), Interval{50, 40, 60}}
		if !mostly(t, "usual control") {
			c.Control.Behind = Interval{value(t, "m"), value(t, "l"), value(t, "h")}
		}
	}
	if rapid.Bool().Draw(t, "captured") {
		c.Captured = &Captured{name(1), name(2), value(t, "possible"), value(t, "load"), []Bar{{name(0), Interval{value(t, "m"), value(t, "l"), value(t, "h")}, false}, {name(2), Point(1), true}}}
	}
	if rapid.Bool().Draw(t, "reliability") {
		c.Reliability = &Reliability{name(0), value(t, "load"), 1, value(t, "lived"), []Calibration{{name(80), true, []Value{.5, value(t, "q")}, []Value{value(t, "o")}, 7}}}
	}
	if rapid.Bool().Draw(t, "timeline") {
		c.Timelines = []Timeline{{name(0), 1, 1, []Value{0, value(t, "t"), 4}, []Series{{name(81), []Value{1, value(t, "v")}}, {name(82), nil}}, []Series{{name(83), []Value{value(t, "w")}}}, []Mark{{value(t, "at"), name(84)}}}}
	}
	if rapid.IntRange(0, 2).Draw(t, "live") == 0 {
		c.Live = &Live{
			Unit: rapid.SampledFrom([]string{"block", "block", "block", "block", "session", "request", ""}).Draw(t, "unit"), Pairs: rapid.SampledFrom([]int{11, 12, 30, 40, 40}).Draw(t, "pairs"),
			DesignEffect: value(t, "deff"), AlwaysValid: mostly(t, "av"), AA: &AA{someP(t), 3, value(t, "wide")},
			CarryOver: &CarryOver{Interval{value(t, "m"), value(t, "l"), value(t, "h")}, Point(1), someP(t)},
			Arrivals:  []Arrival{{name(0), 10, value(t, "r1")}, {name(1), 10, value(t, "r2")}},
			Calendar:  []Block{{time.Unix(0, 0).UTC(), time.Minute, 0, name(0), 0, 5}, {time.Unix(60, 0).UTC(), time.Minute, 0, name(1), 9, 5}},
			Trips:     []Trip{{time.Unix(0, 0).UTC(), name(85), value(t, "v"), value(t, "lim")}},
			OffPolicy: []OffPolicy{{name(1), name(86), Interval{value(t, "m"), value(t, "l"), value(t, "h")}, value(t, "ess"), value(t, "mw"), 4}},
		}
	}
	return c
}

// TestVerdictsAreOfTheClosedSet whatever goes in.
func TestVerdictsAreOfTheClosedSet(t *testing.T) {
	seen := map[Kind]int{}
	judge := func(t *rapid.T) {
		c := random(t, func(i int) string { return fmt.Sprintf("n%d", i) })
		v := Judge(c)
		seen[v.Kind]++
		matches := 0
		for _, p := range patterns {
			if p.MatchString(strings.ReplaceAll(v.Sentence, thin, " ")) {
				matches++
			}
		}
		if p := patterns[v.Kind]; matches != 1 || p == nil || !p.MatchString(strings.ReplaceAll(v.Sentence, thin, " ")) {
			t.Fatalf("%s: %q matches %d patterns", v.Kind, v.Sentence, matches)
		}
		if len(v.More) > 3 {
			t.Fatalf("%d more sentences", len(v.More))
		}
	}
	for all := 0; all < 3000 && !t.Failed(); {
		rapid.Check(t, judge)
		all = 0
		for _, n := range seen {
			all += n
		}
	}
	t.Log(seen)
	for kind := range patterns {
		if seen[kind] == 0 {
			t.Errorf("nothing came to %q: %v", kind, seen)
		}
	}
}

var (
	scripts = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	shown   = regexp.MustCompile(`(?i)\b(NaN|[+−-]?Inf(inity)?)\b`)
)

// sound checks a page: no NaN, data that parse, one end of each script, only known elements.
func sound(t interface{ Fatalf(string, ...any) }, c *Comparison) {
	var b bytes.Buffer
	if err := Write(&b, c); err != nil {
		t.Fatalf("%v", err)
	}
	page := b.String()
	m := scripts.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no data")
		return
	}
	var data struct {
		Comparison Comparison
		Verdict    Verdict
	}
	if err := json.Unmarshal([]byte(m[1]), &data); err != nil {
		t.Fatalf("data: %v", err)
	}
	if data.Comparison.Ours != strings.ToValidUTF8(c.Ours, "\ufffd") || len(data.Comparison.Policies) != len(c.Policies) {
		t.Fatalf("the data are those of %q", data.Comparison.Ours)
	}
	if n := strings.Count(page, "<script"); n != 2 || strings.Count(page, "</script") != 2 || strings.Count(page, "<style") != 1 {
		t.Fatalf("%d scripts", n)
	}
	rest := strings.Replace(page, m[0], "", 1)
	if x := shown.FindString(rest); x != "" {
		t.Fatalf("%s is printed", x)
	}
	for _, bad := range []string{"<img", "<iframe", "onerror=", "javascript:", "%!", "ZgotmplZ"} {
		if strings.Contains(rest, bad) {
			t.Fatalf("%s is in the page", bad)
		}
	}
	for _, u := range []string{"http://", "https://", `src="`, "url(", "@import"} {
		if strings.Contains(rest, u) {
			t.Fatalf("%s is in the page", u)
		}
	}
}

// TestPageOfAnything is sound.
func TestPageOfAnything(t *testing.T) {
	sound(t, &Comparison{})
	sound(t, sample())
	sound(t, sampleLive())
	rapid.Check(t, func(t *rapid.T) { sound(t, random(t, func(i int) string { return fmt.Sprintf("n%d", i) })) })
}

// TestWords: none that promise, and verdicts that are read in one breath.
func TestWords(t *testing.T) {
	banned := regexp.MustCompile(`(?i)\b(score|optimal|AI-powered|up to)\b`)
	for _, c := range []*Comparison{{}, sample(), sampleLive()} {
		page := scripts.ReplaceAllString(string(written(t, c)), "")
		if w := banned.FindString(page); w != "" {
			t.Errorf("%q is on the page", w)
		}
		v := Judge(c)
		for _, s := range strings.Split(v.Sentence, ". ") {
			if n := len(strings.Fields(s)); n > 25 {
				t.Errorf("%d words: %s", n, s)
			}
		}
	}
}

// hostile are names that should stay names.
var hostile = []string{
	"", "</script><script>alert(1)</script>", "<img src=x>", `"><svg>`, "{{.}}", "a\x00b\x1b[31m", "\xff\xfe", "<!--", "]]>", "'; x", "\u2028", "ルーター", strings.Repeat("long", 200), "&amp;", "%s%d",
}

func TestHostileNamesStayNames(t *testing.T) {
	for k, h := range hostile {
		for _, c := range []*Comparison{sample(), sampleLive()} {
			rename(c, func(s string) string { return h })
			var b bytes.Buffer
			if err := Write(&b, c); err != nil {
				t.Fatal(err)
			}
			page := b.String()
			if strings.Count(page, "<script") != 2 || strings.Count(page, "</script") != 2 || strings.Contains(page, "<img") || strings.Contains(page, "<!--") {
				t.Errorf("name %d (%q) got out", k, h)
			}
		}
	}
}

func rename(c *Comparison, as func(string) string) {
	c.Ours, c.Scope.Scenario, c.Method.Command = as(c.Ours), as(c.Scope.Scenario), as(c.Method.Command)
	for i := range c.Policies {
		c.Policies[i].Name, c.Policies[i].Tuning = as(c.Policies[i].Name), as(c.Policies[i].Tuning)
	}
	for i := range c.Versus {
		c.Versus[i].Other = as(c.Versus[i].Other)
	}
	for i := range c.Classes {
		c.Classes[i].Name, c.Classes[i].By = as(c.Classes[i].Name), as(c.Classes[i].By)
	}
	for i := range c.Curves {
		c.Curves[i].Policy = as(c.Curves[i].Policy)
	}
	for i := range c.Timelines {
		for k := range c.Timelines[i].Engines {
			c.Timelines[i].Engines[k].Name = as(c.Timelines[i].Engines[k].Name)
		}
		for k := range c.Timelines[i].Marks {
			c.Timelines[i].Marks[k].Text = as("")
		}
	}
	if c.Captured != nil {
		for i := range c.Captured.Bars {
			c.Captured.Bars[i].Name = as(c.Captured.Bars[i].Name)
		}
	}
}

// FuzzPage: a comparison read from anything gives a sound page.
func FuzzPage(f *testing.F) {
	for _, c := range []*Comparison{{}, duel(interval(1, 2, 40, 8)), live(interval(1, 2, 90, 30))} {
		b, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "x")
	}
	f.Add([]byte(`{"policies":[{}],"versus":[{"primary":{"mean":1e308,"low":-1e308,"high":null}}],"live":{}}`), "</script>")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		var c Comparison
		if len(data) > 1<<16 || json.Unmarshal(data, &c) != nil {
			t.Skip()
		}
		c.Ours = name
		var b bytes.Buffer
		if err := Write(&b, &c); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		m := scripts.FindStringSubmatch(page)
		if m == nil || !json.Valid([]byte(m[1])) || strings.Count(page, "</script") != 2 {
			t.Fatal("the data are broken")
		}
	})
}
