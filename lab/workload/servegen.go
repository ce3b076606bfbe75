package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/cluster"
)

// servegen yields the requests of a ServeGen workload: clients, each with its own renewal process
// whose rate and shape change from window to window, and its own lengths. Clients of which no lengths
// are known are left out; the rate is that of the others together, brought to the rate wanted.
type servegen struct {
	t       *Traffic
	seed    uint64
	clients []*servegenClient
	n       int
}

type servegenClient struct {
	id      int
	windows []datasets.Rate
	lengths []datasets.Lengths
	gaps    *rand.Rand
	sizes   *rand.Rand
	factor  float64 // on rates
	from    float64 // of the part replayed, seconds of the workload's clock
	end     float64
	w       int     // current window
	at      float64 // next arrival
	live    bool
}

// newServeGen reads the rates in path and the lengths in the file beside it.
func newServeGen(t *Traffic, path string, until time.Duration, o Options) (*servegen, error) {
	if t.Trace.Rate == 0 {
		return nil, fmt.Errorf("%s: ServeGen's rates are those of a whole region: give the scenario's trace a rate to bring them to", path)
	}
	rates, _, err := datasets.LoadAs[datasets.Rate](datasets.ServeGenRates, path)
	if err != nil {
		return nil, err
	}
	beside, err := lengthsBeside(path)
	if err != nil {
		return nil, err
	}
	lengths, _, err := datasets.LoadAs[datasets.Lengths](datasets.ServeGenLengths, beside)
	if err != nil {
		return nil, err
	}
	s := &servegen{t: t, seed: o.Seed}
	from, span := t.Trace.From.Seconds(), (until - t.From).Seconds()
	total := s.collect(rates, lengths, from, from+span)
	if total == 0 {
		return nil, fmt.Errorf("%s: no arrivals between %s and %s", path, t.Trace.From, t.Trace.From+until-t.From)
	}
	for _, c := range s.clients {
		c.factor = t.Trace.Rate * o.Load / (total / span)
		c.gaps, c.sizes = stream(o.Seed, t.Class, "gaps", fmt.Sprint(c.id)), stream(o.Seed, t.Class, "sizes", fmt.Sprint(c.id))
		c.advance()
	}
	return s, nil
}

// lengthsBeside is the lengths' file for a rates' file: NAME_tokens.csv for NAME_rates.csv.
func lengthsBeside(path string) (string, error) {
	i := strings.LastIndex(path, "rates")
	if i < 0 {
		return "", fmt.Errorf("%s: its name should hold \"rates\", so that the file with \"tokens\" in its place gives the lengths", path)
	}
	beside := path[:i] + "tokens" + path[i+len("rates"):]
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: not there; ServeGen's lengths are wanted beside its rates", beside)
	}
	return beside, nil
}

// collect makes the clients and returns the number of requests expected of them at factor 1.
func (s *servegen) collect(rates []datasets.Rate, lengths []datasets.Lengths, from, end float64) float64 {
	by := map[int]*servegenClient{}
	for _, l := range lengths {
		c := by[l.Client]
		if c == nil {
			c = &servegenClient{id: l.Client, from: from, end: end}
			by[l.Client] = c
			s.clients = append(s.clients, c)
		}
		c.lengths = append(c.lengths, l)
	}
	total := 0.0
	for _, r := range rates {
		c := by[r.Client]
		overlap := min(r.Start+servegenWindow, end) - max(r.Start, from)
		if c == nil || overlap <= 0 || r.RPS <= 0 {
			continue
		}
		total += r.RPS * overlap
		c.windows = append(c.windows, r)
	}
	s.clients = slices.DeleteFunc(s.clients, func(c *servegenClient) bool { return len(c.windows) == 0 })
	for _, c := range s.clients {
		slices.SortFunc(c.windows, func(a, b datasets.Rate) int { return int(math.Copysign(1, a.Start-b.Start)) })
		slices.SortFunc(c.lengths, func(a, b datasets.Lengths) int { return int(math.Copysign(1, a.Start-b.Start)) })
		c.at = max(from, c.windows[0].Start)
	}
	return total
}

const servegenWindow = 600.0 // seconds

// advance finds the client's next arrival. What is left of a gap at the end of a window passes at the
// speed of the next one.
func (c *servegenClient) advance() {
	left := c.gap(c.windows[c.w])
	for {
		w := c.windows[c.w]
		end := min(w.Start+servegenWindow, c.end)
		if c.at+left < end {
			c.at, c.live = c.at+left, true
			return
		}
		left = (left - (end - c.at)) * w.RPS
		c.w++
		if c.w == len(c.windows) {
			c.live = false
			return
		}
		left /= c.windows[c.w].RPS
		c.at = max(c.windows[c.w].Start, end)
	}
}

// gap draws a gap with the window's mean and shape.
func (c *servegenClient) gap(w datasets.Rate) float64 {
	mean := 1 / (w.RPS * c.factor)
	shape := w.Param1
	if !(shape > 0) {
		return mean * c.gaps.ExpFloat64()
	}
	switch w.Dist {
	case "Gamma":
		return mean * gamma(c.gaps, shape) / shape
	case "Weibull":
		return mean * math.Pow(c.gaps.ExpFloat64(), 1/shape) / math.Gamma(1+1/shape)
	}
	return mean * c.gaps.ExpFloat64()
}

// lengthsAt are the lengths known last.
func (c *servegenClient) lengthsAt(t float64) *datasets.Lengths {
	i := 0
	for i+1 < len(c.lengths) && c.lengths[i+1].Start <= t {
		i++
	}
	return &c.lengths[i]
}

// Next yields the earliest arrival of all clients.
func (s *servegen) Next(j *cluster.Job) bool {
	var c *servegenClient
	for _, o := range s.clients {
		if o.live && (c == nil || o.at < c.at) {
			c = o
		}
	}
	if c == nil {
		return false
	}
	t, l := s.t, c.lengthsAt(c.at)
	j.At = t.From + seconds(c.at-c.from)
	t.label(j)
	j.Tenant = fmt.Sprintf("%s-%d", t.Class, c.id)
	prompt, output := quantiles(&l.In), quantiles(&l.Out)
	j.PromptTokens, j.OutputTokens = prompt.Tokens(c.sizes), t.capped(output.Tokens(c.sizes))
	own := nameOf(s.seed, t.Class+" servegen", s.n)
	s.n++
	text := newChain(nameOf(0, t.Model, 0))
	text.grow(j.PromptTokens + j.OutputTokens)
	text.append(mix(own), j.PromptTokens)
	text.append(mix(own+1), j.OutputTokens)
	j.Blocks = text.view()
	c.advance()
	return true
}

// quantiles is the distribution with the given quantiles .1, .5, .9 and .99.
func quantiles(q *[4]float64) Dist {
	return Dist{Kind: "quantiles", P: []float64{.1, .5, .9, .99}, Q: q[:], Min: 1}
}

var _ cluster.Source = (*servegen)(nil)
