package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/features/scrape"
)

// minToken is the least length of an admin token: what cannot be guessed over a network.
const minToken = 16

// check looks at values that depend on one another. Keys that were refused keep their defaults.
func (d *decoder) check(c *Config) {
	d.checkListen(c)
	d.checkTLS(c)
	d.checkFleet(c)
	if c.Request.TotalBytes < c.Request.MaxBody {
		d.fault(d.line("request.total_bytes"), "request.total_bytes",
			bytesText(c.Request.TotalBytes)+" is less than request.max_body, "+bytesText(c.Request.MaxBody), "raise it, or lower request.max_body")
	}
	if _, err := request.NewParser(request.Config{Rewrite: c.Request.Rewrite, Priorities: c.Priorities}); err != nil {
		d.fault(d.line("request.rewrite"), "request.rewrite", err.Error(), "write the name of a model")
	}
	for _, f := range []struct {
		key   string
		value time.Duration
	}{{"slo.ttft", c.SLO.TTFT}, {"slo.itl", c.SLO.ITL}} {
		if f.value > 0 && f.value < time.Millisecond {
			d.fault(d.line(f.key), f.key, f.value.String()+" is less than any engine can keep", "write 1ms or more, or 0s for none")
		}
	}
	// Idle endpoints are read least often.
	rarest := max(c.Fleet.Scrape.Interval, scrape.DefaultSlowest)
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if age := c.Profiles[name].MaxAge; age > 0 && age <= rarest {
			key := "profiles." + name + ".max_age"
			d.fault(d.line(key), key, fmt.Sprintf("%s is no longer than the time between two readings, %s: every page would be too old", span(age), span(rarest)), "write more than "+span(rarest))
		}
	}
	d.checkKept(c)
	d.checkPolicy(c, "policy", c.Policy)
	d.checkExperiment(c)
}

// checkKept looks at what is kept on disk.
func (d *decoder) checkKept(c *Config) {
	for _, key := range []string{"trace.keep", "trace.budget"} {
		if d.given(key) && !d.given("trace.dir") {
			d.fault(d.line(key), key, "has no effect without trace.dir", "set trace.dir or remove it")
		}
	}
	if c.Trace.Dir != "" && c.Models.Dir != "" && filepath.Clean(c.Trace.Dir) == filepath.Clean(c.Models.Dir) {
		d.fault(d.line("trace.dir"), "trace.dir", shown(c.Trace.Dir)+" is models.dir too", "give each a folder of its own")
	}
}

// checkPolicy reports a name that neither a built-in policy nor a profile has.
func (d *decoder) checkPolicy(c *Config, key, name string) {
	all := slices.Concat(d.policies, slices.Sorted(maps.Keys(c.Profiles)))
	if slices.Contains(all, name) {
		return
	}
	do := "all: presage policies"
	if near := meant(name, all); near != "" {
		do = "nearest " + near + ", " + do
	}
	d.fault(d.line(key), key, fmt.Sprintf("%q unknown", shown(name)), do)
}

func (d *decoder) checkListen(c *Config) {
	type listener struct{ key, addr string }
	var open []listener
	for _, l := range []listener{{"listen.extproc", c.Listen.ExtProc}, {"listen.health", c.Listen.Health}, {"listen.admin", c.Listen.Admin}} {
		if l.addr == "" {
			continue
		}
		for _, o := range open {
			if clash(o.addr, l.addr) {
				d.fault(d.line(l.key), l.key, fmt.Sprintf("%s overlaps with %s %s", l.addr, o.key, o.addr), "give each its own port")
			}
		}
		open = append(open, l)
	}
	token := c.Admin.Token
	if token != "" && len(token) < minToken {
		d.fault(d.line("admin.token"), "admin.token", fmt.Sprintf("%d characters long: too easy to guess", len(token)), fmt.Sprintf("write at least %d characters", minToken))
	}
	if token == "" && !d.given("admin.token") && c.Listen.Admin != "" && !loopback(c.Listen.Admin) {
		d.fault(d.line("listen.admin"), "listen.admin", c.Listen.Admin+" can be reached from other machines, and no admin.token is set", "set admin.token or listen on 127.0.0.1")
	}
}

// clash reports whether two addresses cannot both be listened on.
func clash(a, b string) bool {
	ah, ap, aerr := net.SplitHostPort(a)
	bh, bp, berr := net.SplitHostPort(b)
	every := func(h string) bool { return h == "" || h == "0.0.0.0" || h == "::" }
	return aerr == nil && berr == nil && ap == bp && ap != "0" && (ah == bh || every(ah) || every(bh))
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (d *decoder) checkTLS(c *Config) {
	if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == "tls.mode" }) {
		return
	}
	for _, f := range []struct{ key, value string }{{"tls.cert", c.TLS.Cert}, {"tls.key", c.TLS.Key}} {
		switch {
		case c.TLS.Mode == TLSFiles && !d.given(f.key):
			d.fault(d.line("tls.mode"), f.key, "missing: mode files needs it", "set "+f.key)
		case c.TLS.Mode != TLSFiles && f.value != "":
			d.fault(d.line(f.key), f.key, "not used with mode "+c.TLS.Mode, "set tls.mode: files or remove it")
		}
	}
}

func (d *decoder) checkFleet(c *Config) {
	const file, name, port = "fleet.endpoints.file", "fleet.endpoints.dns.name", "fleet.endpoints.dns.port"
	switch {
	case d.given(file) && d.given("fleet.endpoints.dns"):
		d.fault(d.line("fleet.endpoints.dns"), "fleet.endpoints", "both a file and dns", "keep one")
	case !d.given(file) && !d.given("fleet.endpoints.dns"):
		if !d.given("fleet.endpoints.kubernetes") {
			d.fault(d.line("fleet.endpoints"), "fleet.endpoints", "missing: no model servers to route to", "set "+file+", or "+name+" and "+port)
		}
	case d.given("fleet.endpoints.dns") && !d.given(name):
		d.fault(d.line(name), name, "missing", "write the host name to look up")
	case d.given("fleet.endpoints.dns") && !d.given(port):
		d.fault(d.line(port), port, "missing", "write the port the engines listen on")
	}
	if h := c.Fleet.DNS.Name; h != "" && !isHost(h) {
		d.fault(d.line(name), name, fmt.Sprintf("%q is no host name", shown(h)), "write the name alone, without scheme, port or path")
	}
	if e := c.Fleet.DNS.Engine; e != "" && !slices.Contains(engines(), e) {
		d.fault(d.line("fleet.endpoints.dns.engine"), "fleet.endpoints.dns.engine", fmt.Sprintf("%q unknown", shown(e)), oneOf(e, engines()))
	}
}

// engines are the engines whose metrics pages can be read.
func engines() []string { return []string{"vllm", "sglang", "trtllm"} }
