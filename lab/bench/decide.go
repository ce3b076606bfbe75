package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/admin"
	"github.com/presage-router/presage/router/outlier"
)

// Decide is the cost of a decision in process, as the service makes it: snapshot, prefix match,
// forecasts of a learner that has learned enough for all its members to have a say, policy,
// reservation, explanation written to the ring, metrics.
type Decide struct {
	Endpoints int
	Policy    router.Policy
	Duration  time.Duration
}

// DecideResult is what [Decide.Run] measured.
type DecideResult struct {
	Endpoints int     `json:"endpoints"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Allocs    float64 `json:"allocs_per_decision"`
	Decisions int     `json:"decisions"`
	Pairs     float64 `json:"pairs_per_second"` // (TTFT, ITL) forecasts with quantiles that one core makes, asked for as decisions do
	Voices    int     `json:"voices"`           // members that the forecasts were blended of, over both times
}

// Sizes of the measured situation.
const (
	openPerEndpoint = 16      // requests in flight on every endpoint
	promptBytes     = 8 << 10 // of text, half of it one of a few shared beginnings
	decideRequests  = 4096    // different ones
	batch           = 256     // decisions between two looks at the clock of the whole
)

// Run measures. Requests end in the order in which they began, outside the measured time.
func (b *Decide) Run(ctx context.Context) (DecideResult, error) {
	taught := newSchool()
	last := &lastQuery{}
	r, err := b.router(taught, last)
	if err != nil {
		return DecideResult{}, err
	}
	d := &decider{router: r, requests: decideQueue(), flights: make([]router.Flight, max(b.Endpoints*openPerEndpoint, batch))}
	d.samples = make([]float64, 0, 1<<22)
	if err := d.run(ctx, b.Duration/warmup, b.Endpoints*openPerEndpoint+lessons+batch); err != nil {
		return DecideResult{}, err
	}
	d.samples, d.mallocs = d.samples[:0], 0
	if err := d.run(ctx, b.Duration, 0); err != nil {
		return DecideResult{}, err
	}
	n := len(d.samples)
	q := stat.Quantiles(d.samples, .5, .99)
	return DecideResult{
		Endpoints: b.Endpoints, P50: q[0] * 1e6, P99: q[1] * 1e6, Allocs: float64(d.mallocs) / float64(n), Decisions: n,
		Pairs: pairs(taught.handle.Load(), &last.batch, min(b.Duration/4, time.Second)), Voices: taught.voices(),
	}, nil
}

// router makes the router as the service does, over engines with differing loads.
func (b *Decide) router(taught *school, last *lastQuery) (*router.Router, error) {
	f := new(fleet.Fleet)
	now := time.Now()
	list := make([]*fleet.Endpoint, b.Endpoints)
	for i := range list {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8000)
		list[i] = &fleet.Endpoint{Name: fmt.Sprintf("engine-%d", i+1), Addr: addr, Model: "demo", Engine: "vllm", TP: 1}
	}
	change, err := f.Sync(now, list)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ref := range change.Added {
		f.SetLoad(ref, &fleet.Load{
			At: now.Add(time.Hour), Known: fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV | fleet.KnowBlocks, // fresh for the whole run
			Waiting: int32(rng.IntN(4)), Running: int32(rng.IntN(64)), KVUsage: rng.Float32(), BlockSize: 16, Blocks: 30000,
		})
	}
	ring := admin.NewRing(admin.RingOptions{})
	metrics, err := admin.NewMetrics(admin.MetricsOptions{Registry: telemetry.NewRegistry("presage", telemetry.ReadBuild()), Fleet: f})
	if err != nil {
		return nil, err
	}
	return router.New(router.Options{
		Fleet: f, Policy: b.Policy, Prefixes: prefix.NewIndex(prefix.Options{}), Ratios: new(request.Ratios),
		Observer: router.Observers{ring, metrics, taught}, Recorder: router.Recorders{ring, metrics, last}, Outliers: &outlier.Detector{},
		Forecast: &taught.handle, Seed: 1,
	}), nil
}

// lastQuery keeps the features of one decision.
type lastQuery struct {
	batch predictor.Batch
	every int
}

// Record implements router.Recorder. It is cheap: one decision in many is kept.
func (l *lastQuery) Record(_ router.ID, q *router.Query, _ *router.Decision) {
	if l.every++; l.every&(l.every-1) == 0 {
		l.batch.Size(len(q.Snap.States))
		features.Extract(l.batch.X, l.batch.At, q.Req, q.Snap, q.Hits)
	}
}

// decideQueue makes requests as the parser leaves them.
func decideQueue() []*request.Request {
	rng := rand.New(rand.NewPCG(3, 4))
	blocks := promptBytes / prefix.DefaultBlock
	var shared [sharedBeginnings][]uint64
	for i := range shared {
		for range blocks / 2 {
			shared[i] = append(shared[i], rng.Uint64())
		}
	}
	out := make([]*request.Request, decideRequests)
	for i := range out {
		chain := append([]uint64(nil), shared[rng.IntN(len(shared))]...)
		for len(chain) < blocks {
			chain = append(chain, rng.Uint64())
		}
		out[i] = &request.Request{
			API: request.Chat, Path: "/v1/chat/completions", Model: "demo", Stream: true, Choices: 1,
			PromptBytes: promptBytes, PromptTokens: promptBytes / 4, Blocks: chain, BlockSize: prefix.DefaultBlock,
			SLO: request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond},
		}
	}
	return out
}

// decider makes decisions and keeps a constant number of requests in flight.
type decider struct {
	router   *router.Router
	requests []*request.Request
	flights  []router.Flight
	next     int
	samples  []float64 // seconds
	mallocs  uint64
}

// run decides for a while, and at least so many times.
func (d *decider) run(ctx context.Context, length time.Duration, least int) error {
	var m runtime.MemStats
	for began, n := time.Now(), 0; (time.Since(began) < length || n < least) && len(d.samples)+batch <= cap(d.samples); n += batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		for k := range batch { // room for the batch; meanwhile others have begun to stream
			end := time.Now()
			d.flight(k+len(d.flights)/2).Tokens(end, 1)
			d.flight(k).Finish(end, &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Prompt: promptBytes / 4, Cached: -1, Output: 16}})
		}
		runtime.ReadMemStats(&m)
		before := m.Mallocs
		for k := range batch {
			f := d.flight(k)
			f.Reset()
			ask := router.Ask{Now: time.Now(), Req: d.requests[(d.next+k)%len(d.requests)]}
			err := d.router.Route(&ask, f)
			d.samples = append(d.samples, time.Since(ask.Now).Seconds())
			if err != nil {
				return fmt.Errorf("decision %d: %w", d.next+k, err)
			}
		}
		runtime.ReadMemStats(&m)
		d.mallocs += m.Mallocs - before
		d.next += batch
	}
	if len(d.samples) == 0 {
		return errors.New("no decision was made; give more time")
	}
	return nil
}

func (d *decider) flight(k int) *router.Flight { return &d.flights[(d.next+k)%len(d.flights)] }
