package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features/discover"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/features/scrape"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/admin"
	"github.com/presage-router/presage/router/extproc"
)

// Deps are what a service is given beside its configuration. The zero value will do.
type Deps struct {
	Log       *slog.Logger      // nil: nothing is logged
	Level     *slog.LevelVar    // follows log.level of the configuration; nil: nothing does
	Path      string            // configuration file to follow; empty: none
	Endpoints []*fleet.Endpoint // not nil: the endpoints, instead of the configuration's source
	Policy    router.Policy     // not nil: instead of the configuration's policy, until SetPolicy
	Observers []router.Observer // receive every finished request, beside the service's own
	Seed      uint64            // of random draws; 0: a random one
}

// Service is one running endpoint picker. Its methods are safe for concurrent use.
type Service struct {
	deps  Deps
	log   *slog.Logger
	seed  uint64
	open  listeners
	file  *watcher
	addrs Addrs

	fleet   *fleet.Fleet
	index   *prefix.Index
	ratios  *request.Ratios
	router  *router.Router
	ext     *extproc.Server
	source  discover.Source // nil: endpoints come from SetEndpoints alone
	scraper *scrape.Scraper
	metrics *admin.Metrics
	tutor   *tutor
	journal *journal     // nil: requests are not logged
	library *library     // nil: no models are kept
	pages   *http.Server // of the admin address

	ran, seen, draining atomic.Bool // Run was called; there was an endpoint; no new requests are wanted

	stop    context.CancelFunc // of everything, at once
	stopped context.Context

	mu         sync.Mutex // guards what follows
	cfg        *config.Config
	generation int // of the configuration in force

	snap     fleet.Snapshot // of upkeep
	restarts []restarts     // by slot, of upkeep
}

// New opens the listeners of a configuration that has passed its checks and prepares everything
// else; nothing is served before [Service.Run]. Whoever makes a service runs or stops it.
func New(cfg *config.Config, d Deps) (*Service, error) {
	s := &Service{
		deps: d, log: d.Log, seed: d.Seed, cfg: cfg, generation: 1,
		fleet: new(fleet.Fleet), index: prefix.NewIndex(prefix.Options{}), ratios: new(request.Ratios),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.seed == 0 {
		s.seed = rand.Uint64()
	}
	if d.Level != nil {
		d.Level.Set(cfg.Log.Level)
	}
	if d.Path != "" {
		s.file = newWatcher(d.Path)
	}
	if d.Endpoints == nil {
		s.source = newSource(&cfg.Fleet)
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.scraper = &scrape.Scraper{Fleet: s.fleet, Interval: cfg.Fleet.Scrape.Interval, Timeout: cfg.Fleet.Scrape.Timeout, Log: s.log}
	if err := s.scraper.Validate(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	err := s.openFiles()
	if err == nil {
		err = s.wire()
	}
	if err != nil {
		s.closeFiles()
		return nil, err
	}
	if err = s.firstEndpoints(); err == nil {
		s.open, err = listen(s.stopped, &cfg.Listen)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.learnFirst()
	s.addrs = s.open.addrs()
	return s, nil
}

// wire makes the router and the servers around it.
func (s *Service) wire() error {
	policy := s.deps.Policy
	if policy == nil {
		var err error
		if policy, err = s.compose(nil, s.cfg); err != nil {
			return err
		}
	}
	parser, err := s.parser(s.cfg)
	if err != nil {
		return err
	}
	registry := telemetry.NewRegistry("presage", telemetry.ReadBuild())
	outliers := s.outliers(s.cfg)
	levels := []request.SLO{{TTFT: s.cfg.SLO.TTFT, ITL: s.cfg.SLO.ITL}}
	counted := admin.MetricsOptions{
		Registry: registry, Fleet: s.fleet, SLO: levels, Prefixes: s.index.Stats, Scrapes: s.scraper.Stats, Outliers: outliers, Learner: s.learning,
	}
	observers := router.Observers{}
	var rows admin.Rows
	if s.journal != nil {
		observers, rows, counted.Trace = append(observers, s.journal), s.journal.rows, s.journal.logged
	}
	if s.metrics, err = admin.NewMetrics(counted); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	s.follows(policy)
	s.metrics.Reloaded(time.Now(), s.generation, true)
	ring := admin.NewRing(admin.RingOptions{})
	s.tutor = newTutor(s.fleet, predictor.Options{Prior: seed.Prior})
	s.router = router.New(router.Options{
		Fleet: s.fleet, Policy: policy, Prefixes: s.index, Ratios: s.ratios,
		Observer: slices.Concat(observers, router.Observers{ring, s.metrics, s.tutor}, s.deps.Observers),
		Recorder: router.Recorders{ring, s.metrics},
		Outliers: outliers, Forecast: &s.tutor.handle,
		Seed: s.seed, Strict: s.cfg.Request.UnknownModel == config.Unknown404,
	})
	handler, err := admin.New(admin.Options{
		Address: s.cfg.Listen.Admin, Token: s.cfg.Admin.Token, Hosts: s.cfg.Admin.Hosts,
		Router: s.router, Ring: ring, Policies: Policies(), Metrics: telemetry.Page(registry), Ready: s.whyNotReady, Trace: rows, Now: time.Now,
	})
	if err != nil && s.cfg.Listen.Admin != "" {
		return err
	}
	s.pages = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	secure, err := secure(&s.cfg.TLS, time.Now())
	if err != nil {
		return err
	}
	s.ext, err = extproc.New(extproc.Options{
		Router: s.router, Parser: parser, Log: s.log, Stats: stats{s.metrics, s.router},
		Limits: extproc.Limits{
			MaxBody: s.cfg.Request.MaxBody, TotalBytes: s.cfg.Request.TotalBytes, Decision: s.cfg.Request.DecisionDeadline,
		},
		Answer: answer(s.cfg), TLS: secure, Linger: linger(s.cfg.Drain.Timeout),
	})
	return err
}

// parser makes the reader of request bodies.
func (s *Service) parser(c *config.Config) (*request.Parser, error) {
	p, err := request.NewParser(request.Config{
		Rewrite: c.Request.Rewrite, Priorities: c.Priorities,
		SLO: request.SLO{TTFT: c.SLO.TTFT, ITL: c.SLO.ITL},
	})
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return p, nil
}

func answer(c *config.Config) extproc.Answer {
	return extproc.Answer{
		Endpoints: c.Answer.Endpoints, DecisionHeader: c.Answer.DecisionHeader, ClearRouteCache: c.Answer.ClearRouteCache,
	}
}

// linger is how long new requests are still taken while draining: until the gateway's health checks
// (every 2 s, two in a row, in our example) have noticed, but no large part of the drain period.
func linger(drain time.Duration) time.Duration { return min(drain/4, 5*time.Second) }

// secure makes the TLS configuration; nil is plaintext.
func secure(c *config.TLS, now time.Time) (*tls.Config, error) {
	switch c.Mode {
	case config.TLSSelfSigned:
		return extproc.SelfSigned(now)
	case config.TLSFiles:
		t, err := extproc.Files(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		return t, nil
	}
	return nil, nil
}

// Addrs returns the addresses really listened on.
func (s *Service) Addrs() Addrs { return s.addrs }

// Fleet returns the fleet.
func (s *Service) Fleet() *fleet.Fleet { return s.fleet }

// Router returns the router.
func (s *Service) Router() *router.Router { return s.router }

// SetPolicy makes the policy of that name, one of [Policies] or a profile of the configuration,
// decide from the next request on.
func (s *Service) SetPolicy(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := newPolicy(s.cfg, name, s.seed)
	if err != nil {
		return err
	}
	s.use(p)
	return nil
}

// ResetPrefixes forgets what endpoints are believed to cache, as when all engines start anew.
func (s *Service) ResetPrefixes() { s.index.Forget() }

// errTwice is returned by the second Run.
var errTwice = errors.New("a service runs once")
