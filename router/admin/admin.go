package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Options are what the admin pages show and how they are guarded. Router, Ring and Now must be set.
type Options struct {
	Address  string           // listened on; one that is not loopback needs a Token
	Token    string           // asked for as Bearer on every page but /healthz and /readyz; empty: none
	Hosts    []string         // names this address is known by, beside localhost and addresses
	Router   *router.Router   // whose fleet and policy are shown
	Ring     *Ring            // its decisions
	Policies router.Registry  // that could be chosen
	Metrics  http.Handler     // the metrics page; nil: there is none
	Ready    func() error     // why no request can be served yet; nil: always ready
	Trace    Rows             // logged requests; nil: there is no log
	Now      func() time.Time // the clock
	Profile  bool             // serve /debug/pprof/
}

// New returns the handler of the admin address. It refuses an address that others can reach without
// a token.
func New(o Options) (http.Handler, error) {
	if o.Token == "" && !loopback(o.Address) {
		return nil, fmt.Errorf("listen.admin: %s: others can reach it and there is no token; set admin.token or listen on 127.0.0.1", o.Address)
	}
	p := &pages{Options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", p.health)
	mux.HandleFunc("GET /readyz", p.ready)
	guarded := func(pattern string, h http.Handler) { mux.Handle(pattern, p.guard(h)) }
	guarded("GET /{$}", http.HandlerFunc(p.index))
	guarded("GET /explain", http.HandlerFunc(p.explain))
	guarded("GET /endpoints", http.HandlerFunc(p.endpoints))
	guarded("GET /trace", http.HandlerFunc(p.trace))
	guarded("GET /policies", http.HandlerFunc(p.policies))
	if o.Metrics != nil {
		guarded("GET /metrics", o.Metrics)
	}
	if o.Profile {
		guarded("GET /debug/pprof/", http.HandlerFunc(pprof.Index))
		guarded("GET /debug/pprof/profile", http.HandlerFunc(pprof.Profile))
		guarded("GET /debug/pprof/trace", http.HandlerFunc(pprof.Trace))
	}
	return p.front(http.NewCrossOriginProtection().Handler(mux)), nil
}

// pages are the handlers.
type pages struct {
	Options
	exporting atomic.Bool // somebody reads the log
}

// loopback reports whether only this machine can reach the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// state names the condition of an endpoint as operators see it.
func state(s *fleet.State, now time.Time) string {
	switch {
	case s.Drain:
		return "draining"
	case s.At.IsZero():
		return "warming" // never scraped
	case now.Sub(s.At) > router.DefaultMaxAge:
		return "stale"
	}
	return "ready"
}
