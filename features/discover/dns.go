package discover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Resolver looks up the addresses of a host; [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNS is a name whose A records, or AAAA records where it has no A record, are the endpoints, as of
// a headless service: every address of the answer is one endpoint, named ADDRESS:PORT. The name is
// looked up every Every, whatever the records' time to live. The answer must be complete: behind a
// name server that returns some addresses at a time, endpoints come and go.
//
// An address that is no longer in the answer leaves at once. A lookup that fails keeps the set in
// force for ever. The answer that there is no such name or no address empties it, but only after Hold
// without any other: a name server that starts up also answers so.
type DNS struct {
	Name     string
	Port     uint16
	Endpoint fleet.Endpoint // model, engine and the like of every endpoint; its name and address are ignored
	Resolver Resolver       // nil: the host's
	Every    time.Duration  // between lookups; 0: DefaultLookup
	Hold     time.Duration  // before an empty answer counts; 0: DefaultHold
}

// Defaults of [DNS].
const (
	DefaultLookup = 5 * time.Second
	DefaultHold   = 30 * time.Second
)

// maxAddresses bounds an answer.
const maxAddresses = 4096

// Run looks the name up.
func (d *DNS) Run(ctx context.Context, out chan<- Update) {
	every, hold := d.Every, d.Hold
	if every <= 0 {
		every = DefaultLookup
	}
	if hold <= 0 {
		hold = DefaultHold
	}
	a := answers{hold: hold}
	for ctx.Err() == nil {
		lctx, cancel := context.WithTimeout(ctx, every)
		addrs, err := d.lookup(lctx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if news, err := a.take(time.Now(), addrs, err); err != nil {
			send(ctx, out, Update{Err: fmt.Errorf("dns %s: %w", d.Name, err)})
		} else if news {
			send(ctx, out, Update{Endpoints: d.endpoints(addrs)})
		}
		pause(ctx, every)
	}
}

// lookup returns the sorted addresses; none without an error means that there are none.
func (d *DNS) lookup(ctx context.Context) ([]netip.Addr, error) {
	var r Resolver = net.DefaultResolver
	if d.Resolver != nil {
		r = d.Resolver
	}
	for _, network := range []string{"ip4", "ip6"} {
		found, err := r.LookupNetIP(ctx, network, d.Name)
		var dns *net.DNSError
		if notFound := errors.As(err, &dns) && dns.IsNotFound; err != nil && !notFound {
			return nil, err
		}
		var addrs []netip.Addr
		for _, a := range found {
			if a = a.Unmap().WithZone(""); a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() {
				addrs = append(addrs, a)
			}
		}
		if len(addrs) > maxAddresses {
			return nil, fmt.Errorf("%d addresses: more than %d; is this the right name?", len(addrs), maxAddresses)
		}
		if len(addrs) > 0 {
			slices.SortFunc(addrs, netip.Addr.Compare)
			return slices.Compact(addrs), nil
		}
	}
	return nil, nil
}

func (d *DNS) endpoints(addrs []netip.Addr) []*fleet.Endpoint {
	set := make([]*fleet.Endpoint, 0, len(addrs))
	for _, a := range addrs {
		e := d.Endpoint
		e.Addr = netip.AddrPortFrom(a, d.Port)
		e.Name, e.Origin = e.Addr.String(), "dns "+d.Name
		e.TP = max(1, e.TP)
		set = append(set, &e)
	}
	return set
}

// answers judges one answer after the other.
type answers struct {
	hold    time.Duration
	known   bool
	addrs   []netip.Addr // in force
	empty   time.Time    // since when all answers say that there is no address; zero: the last did not
	failure string       // what was last reported
}

// take returns whether there is a set to send, or what there is to report.
func (a *answers) take(now time.Time, addrs []netip.Addr, err error) (news bool, report error) {
	if err != nil {
		a.empty = time.Time{}
		return false, a.failed(reason(err))
	}
	if len(addrs) > 0 {
		a.empty = time.Time{}
	} else if a.empty.IsZero() {
		a.empty = now
	}
	switch {
	case len(addrs) > 0:
	case !a.known:
		return false, a.failed("no such name, or no address; is it the right one?")
	case len(a.addrs) > 0 && now.Sub(a.empty) < a.hold:
		return false, a.failed(fmt.Sprintf("no address any more; after %v without one, no endpoint is left", a.hold))
	}
	news = !a.known || a.failure != "" || !slices.Equal(addrs, a.addrs)
	a.known, a.failure, a.addrs = true, "", slices.Clone(addrs)
	return news, nil
}

// failed returns the failure as an error, the first time.
func (a *answers) failed(what string) error {
	if a.failure == what {
		return nil
	}
	a.failure = what
	return errors.New(what)
}

// reason says why a lookup failed, without what differs from try to try.
func reason(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns) && dns.IsTimeout:
		return "no answer in time; is the name server up?"
	case dns != nil:
		return dns.Err + "; is the name server well?"
	}
	return err.Error()
}

var _ Source = (*DNS)(nil)
