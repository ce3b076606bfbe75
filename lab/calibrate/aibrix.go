package calibrate

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// stickyMap sends every session to an engine of its own choosing: a random map from sessions to
// engines, as aibrix's hashing of session ids is.
type stickyMap struct{ seed uint64 }

// Name implements [router.Policy].
func (*stickyMap) Name() string { return "sticky-map" }

// Route implements [router.Policy].
func (s *stickyMap) Route(q *router.Query, d *router.Decision) error {
	n := s.engine(q.Req.Session, q.Candidates())
	for i, k := range q.Keep {
		if !k {
			continue
		}
		if n == 0 {
			d.Index, d.Propensity = i, 1
			break
		}
		n--
	}
	return nil
}

// engine is where a session lives among n.
func (s *stickyMap) engine(session string, n int) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", s.seed, session)
	return int(mix(h.Sum64()) % uint64(n))
}

// chats are the requests of the aibrix benchmark, rate by rate.
type chats struct {
	rates []float64
	jobs  map[float64][]cluster.Job // At since the start of the rate
}

// chatShared is how many prompt tokens all sessions share.
const chatShared = 1000

// newChats takes the sessions, times and lengths of the recorded runs. The recording lacks the rates
// 1.3 and 1.7: theirs are the first requests of rate 2.1, at a slower pace, as all rates send the same
// sessions in the same order.
func newChats(rows []datasets.Row) (*chats, error) {
	c := &chats{jobs: map[float64][]cluster.Job{}}
	for i := range rows {
		r := &rows[i]
		if r.Run != chatRun("ps_naive", r.OfferedRPS) {
			continue
		}
		if r.Prompt < 1 || r.Output < 1 || !datasets.Known(r.Arrival) {
			return nil, fmt.Errorf("run %s, line %d: tokens or arrival missing", r.Run, r.Line)
		}
		if len(c.jobs[r.OfferedRPS]) == 0 {
			c.rates = append(c.rates, r.OfferedRPS)
		}
		c.jobs[r.OfferedRPS] = append(c.jobs[r.OfferedRPS], cluster.Job{
			At: time.Duration(r.Arrival * 1e9), Session: r.Session, PromptTokens: r.Prompt, OutputTokens: r.Output,
			Blocks: chatBlocks(r.Session, r.Prompt+r.Output),
		})
	}
	const full = 2.1
	if len(c.jobs[full]) == 0 {
		return nil, fmt.Errorf("run %s: not in the file; the folder holds other data than expected", chatRun("ps_naive", full))
	}
	for _, rate := range []float64{1.3, 1.7} {
		n := int(float64(len(c.jobs[full])) * rate / full)
		jobs := slices.Clone(c.jobs[full][:n])
		for i := range jobs {
			jobs[i].At = time.Duration(float64(jobs[i].At) * full / rate)
		}
		c.rates, c.jobs[rate] = append(c.rates, rate), jobs
	}
	slices.Sort(c.rates)
	return c, nil
}

// chatBlocks is the chain of a session: the shared beginning, then its own text. A second turn
// continues the first.
func chatBlocks(session string, tokens int) []uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, session)
	own := mix(h.Sum64())
	blocks := make([]uint64, tokens/16)
	for i := range blocks {
		blocks[i] = mix(uint64(i) + 1)
		if i >= chatShared/16 {
			blocks[i] = mix(own + uint64(i))
		}
	}
	return blocks
}

// arms routes the requests of two arms of the benchmark, one after the other: the first at random, the
// second by a sticky map.
type arms struct {
	random *baseline.Random
	sticky stickyMap
	left   int // requests of the first arm
}

// Name implements [router.Policy].
func (*arms) Name() string { return "random, then sticky" }

// Route implements [router.Policy].
func (a *arms) Route(q *router.Query, d *router.Decision) error {
	if a.left > 0 {
		a.left--
		return a.random.Route(q, d)
	}
	return a.sticky.Route(q, d)
}

// curve is mean TTFT in seconds by rate.
type curve map[float64]float64

// run sends all rates, ascending, to 8 A100 with Llama-3.1-8B, each when the one before has been
// answered, first under random placement and then under a sticky map, and returns the curves of both.
// Caches are kept throughout: the recording of the sticky arm has hits on its very first requests, so
// its engines had served before.
func (c *chats) run(coefs *engine.Coefs, seed uint64) (random, sticky curve, err error) {
	const pause = 2 * time.Minute // longer than any answer takes
	var src cluster.Slice
	at := time.Duration(0)
	policy := &arms{random: baseline.NewRandom(router.Params{}), sticky: stickyMap{seed: seed}}
	for _, arm := range []string{"random", "sticky"} {
		for _, rate := range c.rates {
			jobs := slices.Clone(c.jobs[rate])
			for i := range jobs {
				jobs[i].At += at
				jobs[i].Class, jobs[i].Tenant = arm, strconv.FormatFloat(rate, 'g', -1, 64)
			}
			src.Jobs = append(src.Jobs, jobs...)
			at = jobs[len(jobs)-1].At + pause
		}
		if arm == "random" {
			policy.left = len(src.Jobs)
		}
	}
	cfg := cluster.Config{Policy: policy, Seed: seed, NoPrefixes: true, Nodes: make([]cluster.Node, 8)}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Engine.Coefs = *coefs
	}
	ttft := map[[2]string][]float64{}
	_, err = cluster.Run(cfg, &src, func(r *cluster.Record) {
		k := [2]string{r.Class, r.Tenant}
		ttft[k] = append(ttft[k], r.TTFT.Seconds())
	})
	random, sticky = curve{}, curve{}
	for _, rate := range c.rates {
		name := strconv.FormatFloat(rate, 'g', -1, 64)
		random[rate], sticky[rate] = stat.Mean(ttft[[2]string{"random", name}]), stat.Mean(ttft[[2]string{"sticky", name}])
	}
	return random, sticky, err
}

// Chat is one rate of the aibrix benchmark: mean TTFT in seconds, measured and simulated, under sticky
// sessions and under random placement (the plain service of the recording). Rates that the recording
// lacks have measured values of 0.
type Chat struct {
	Rate           float64 `json:"rate"` // requests per second
	StickyMeasured float64 `json:"sticky_measured,omitempty"`
	Sticky         float64 `json:"sticky"` // mean over the maps
	RandomMeasured float64 `json:"random_measured,omitempty"`
	Random         float64 `json:"random"`
}

// sessionMaps is how many random maps from sessions to engines are averaged.
const sessionMaps = 20

// chats compares sticky sessions with random placement, rate by rate, with what was measured.
func (v *validation) chats(ctx context.Context) error {
	rows, err := load[datasets.Row](v, "aibrix-bench-a100", "measured.csv.gz")
	if err != nil {
		return err
	}
	c, err := newChats(rows)
	if err != nil {
		return err
	}
	coefs, err := v.table.Find("A100", "llama-3.1-8b", 1, "")
	if err != nil {
		return err
	}
	_, runs := byRun(rows, func(r *datasets.Row) string { return r.Run })
	curves := make([]Chat, len(c.rates))
	for seed := range uint64(sessionMaps) {
		if err := ctx.Err(); err != nil {
			return err
		}
		random, sticky, err := c.run(coefs, seed)
		if err != nil {
			return err
		}
		for i, rate := range c.rates {
			curves[i].Rate = rate
			curves[i].Random += random[rate] / sessionMaps
			curves[i].Sticky += sticky[rate] / sessionMaps
		}
	}
	for i := range curves {
		p := &curves[i]
		p.StickyMeasured, p.RandomMeasured = meanTTFT(runs[chatRun("ps_naive", p.Rate)]), meanTTFT(runs[chatRun("naive", p.Rate)])
		n := sessionMaps * len(c.jobs[p.Rate])
		const low = 1.0 // rates below are compared in value
		if p.Rate < low {
			for _, arm := range []struct {
				name          string
				sim, measured float64
			}{{"sticky", p.Sticky, p.StickyMeasured}, {"random", p.Random, p.RandomMeasured}} {
				v.add(Check{Name: fmt.Sprintf("chat sessions: mean TTFT at %v/s, %s", p.Rate, arm.name), Rows: n, Fitted: nothing, Error: math.Abs(arm.sim/arm.measured - 1), Limit: 0.25})
			}
		}
		if p.Rate == 0.5 || p.Rate == 0.9 {
			v.add(Check{Name: fmt.Sprintf("order 3: mean TTFT at %v/s, sticky / random", p.Rate), Rows: 2 * n, Fitted: nothing, Error: p.Sticky / p.Random, Limit: 0.75})
		}
	}
	v.report.Chats = curves
	sent := 0
	for _, rate := range c.rates {
		sent += 2 * sessionMaps * len(c.jobs[rate])
	}
	v.add(crossing(curves, sent))
	return nil
}

// crossing checks that sticky sessions lose their advantage at some rate in 1.7 to 2.9 per second. Its
// error is by how far the lowest rate at which they have lost it lies outside.
func crossing(curves []Chat, rows int) Check {
	c := Check{Name: "order 3: rates by which sticky loses its advantage outside 1.7 to 2.9/s", Rows: rows, Fitted: nothing, Error: math.NaN(), Limit: 0.01}
	for _, p := range curves {
		if p.Rate > 0.9 && p.Sticky >= p.Random {
			c.Error = max(0, 1.7-p.Rate, p.Rate-2.9)
			break
		}
	}
	return c
}

// meanTTFT is 0 without rows.
func meanTTFT(rows []datasets.Row) float64 {
	s := 0.0
	for i := range rows {
		s += rows[i].TTFT / float64(len(rows))
	}
	return s
}

// chatRun names a run of the recording.
func chatRun(arm string, rate float64) string {
	return fmt.Sprintf("aibrix-v0.2.1-%s-q%v", arm, rate)
}

var (
	_ router.Policy = (*stickyMap)(nil)
	_ router.Policy = (*arms)(nil)
)
