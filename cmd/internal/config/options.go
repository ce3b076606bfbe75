package config

import (
	"log/slog"
	"math"
	"slices"
	"time"
)

// option is one key of the file: the row of the table that decodes it, checks it and documents it.
type option struct {
	key   string // dotted
	kind  string // what may be written, with limits
	def   string // default, as it would be written
	about string
	set   func(d *decoder, key string, n *node)
}

const (
	leastScrape = 50 * time.Millisecond // below, scraping costs more than the freshness is worth
	maxPort     = math.MaxUint16

	mostKept   = 10 * 365 * 24 * time.Hour
	leastTrace = 64 << 20 // what the store needs
	mostTrace  = 16 << 40
)

// options binds the table to c, whose present values are the defaults.
func (c *Config) options() []option {
	return slices.Concat([]option{
		addressOption("listen.extproc", "Where the gateway's ext_proc streams arrive (gRPC), with the gRPC health service.", &c.Listen.ExtProc, false),
		addressOption("listen.health", "gRPC health service alone, in plaintext, for probes.", &c.Listen.Health, true),
		addressOption("listen.admin", "Metrics, endpoints and explanations over HTTP. An address other than loopback needs `admin.token`.", &c.Listen.Admin, true),
		textOption("admin.token", "Bearer token that every page of the admin address asks for; at least 16 characters.", "a token", &c.Admin.Token),
		hostsOption(&c.Admin.Hosts),

		choiceOption("tls.mode", "TLS of `listen.extproc`. `self-signed` makes a fresh certificate at start, as most gateways expect from an endpoint picker; `files` reads `tls.cert` and `tls.key`.", &c.TLS.Mode, TLSOff, TLSSelfSigned, TLSFiles),
		textOption("tls.cert", "Certificate chain, PEM. With mode `files`.", "a file", &c.TLS.Cert),
		textOption("tls.key", "Private key, PEM. With mode `files`.", "a file", &c.TLS.Key),
	}, c.fleetOptions(), []option{
		sizeOption("request.max_body", "Largest request body; a larger one is answered 413.", &c.Request.MaxBody, 1<<10, 1<<30),
		sizeOption("request.total_bytes", "Memory for all request bodies held at once; past it requests are answered 503. At least `request.max_body`.", &c.Request.TotalBytes, 1<<10, 1<<38),
		durationOption("request.decision_deadline", "Longest time from a complete body to the answer; past it the request is answered 503.", &c.Request.DecisionDeadline, time.Millisecond, 10*time.Minute),
		choiceOption("request.unknown_model", "A model name that no endpoint serves is routed anywhere (`route`) or refused (`404`).", &c.Request.UnknownModel, UnknownRoute, Unknown404),
		rewriteOption(&c.Request.Rewrite),

		intOption("answer.endpoints", "Addresses named to the gateway, best first. More than 1 needs a gateway that walks lists (Envoy's `override_host`); an `ORIGINAL_DST` cluster answers 503 to a list.", &c.Answer.Endpoints, 1, 8),
		boolOption("answer.decision_header", "Adds `x-presage-decision` to answers, the id that `presage explain` takes, and `x-presage-arm` where there is an experiment.", &c.Answer.DecisionHeader),
		boolOption("answer.clear_route_cache", "Has the gateway choose its route again after the decision. Needed only where routes match on headers set by the decision.", &c.Answer.ClearRouteCache),

		durationOption("slo.ttft", "SLO of the time to first token for requests that name none; 0s: none.", &c.SLO.TTFT, 0, time.Hour),
		durationOption("slo.itl", "SLO of the mean gap between tokens for requests that name none; 0s: none.", &c.SLO.ITL, 0, time.Hour),
		prioritiesOption(&c.Priorities),

		policyOption(&c.Policy),
		profilesOption(&c.Profiles),
	}, c.experimentOptions(), []option{
		switchOption("outliers", "Keeps endpoints that fail, hang or cannot be reached out of the decisions until a probe succeeds; at most 30 % of a model's, never a lone one.", &c.Outliers),

		dirOption("models.dir", "Registry of models, made if need be: its champion is what the service begins with, a new champion comes into force while it runs, and what it learned is kept here over restarts. Without it, or with \"\", the service begins with the built-in priors.", &c.Models.Dir),
		dirOption("trace.dir", "Log of finished requests, made if need be, for one process alone. It holds numbers and names, no text. Without it, or with \"\", nothing is logged.", &c.Trace.Dir),
		durationOption("trace.keep", "Age at which records go, by whole hours.", &c.Trace.Keep, time.Hour, mostKept),
		sizeOption("trace.budget", "Room on disk; the oldest records go first.", &c.Trace.Budget, leastTrace, mostTrace),

		durationOption("drain.timeout", "How long open requests may run on after SIGTERM; 0s cuts them at once.", &c.Drain.Timeout, 0, 24*time.Hour),
		levelOption(&c.Log.Level),
	})
}

func (c *Config) fleetOptions() []option {
	dns := &c.Fleet.DNS
	return []option{
		textOption("fleet.endpoints.file", "Endpoints file, watched for changes; relative to the configuration file. Either this or `fleet.endpoints.dns.name`.", "a file", &c.Fleet.File),
		textOption("fleet.endpoints.dns.name", "Host name whose every address is an endpoint (a headless service), looked up again and again.", "a host name", &dns.Name),
		intOption("fleet.endpoints.dns.port", "Port of every endpoint found by DNS.", &dns.Port, 1, maxPort),
		textOption("fleet.endpoints.dns.model", "Model that the endpoints found by DNS serve; without it they are taken to serve any.", "a model name", &dns.Model),
		textOption("fleet.endpoints.dns.engine", "Engine of the endpoints found by DNS; without it the metrics page tells.", "an engine name", &dns.Engine),
		scrapeOption(&c.Fleet.Scrape.Interval),
		durationOption("fleet.scrape.timeout", "Longest wait for a metrics page.", &c.Fleet.Scrape.Timeout, time.Millisecond, 10*time.Second),
	}
}

// scrapeOption clamps intervals that are legal but pointless.
func scrapeOption(dst *time.Duration) option {
	const most = 2 * time.Second // beyond, what is known of an engine would be older than policies believe
	o := durationOption("fleet.scrape.interval", "Time between two readings of an endpoint's metrics page; less than "+span(leastScrape)+" is read as "+span(leastScrape)+", with a warning.", dst, time.Nanosecond, most)
	o.kind = "duration, " + span(leastScrape) + " to " + span(most)
	set := o.set
	o.set = func(d *decoder, key string, n *node) {
		set(d, key, n)
		if *dst < leastScrape {
			d.warn(n.line, key, n.value+" is too often to be of use", "taken as "+span(leastScrape))
			*dst = leastScrape
		}
	}
	return o
}

func levelOption(dst *slog.Level) option {
	names := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level := "info"
	o := choiceOption("log.level", "Least level that is logged.", &level, "debug", "info", "warn", "error")
	set := o.set
	o.set = func(d *decoder, key string, n *node) {
		set(d, key, n)
		*dst = names[level]
	}
	return o
}

func policyOption(dst *string) option {
	return option{
		key: "policy", kind: "policy name", def: *dst,
		about: "How endpoints are picked: a name of `presage policies` or of `profiles`.",
		set: func(d *decoder, key string, n *node) {
			if s, ok := d.scalar(key, n, "a policy name"); ok {
				*dst = s
			}
		},
	}
}
