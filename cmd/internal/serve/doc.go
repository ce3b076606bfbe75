// Package serve is the wired service: endpoints from discovery, loads from scraping, the prefix index,
// the router with the configured policy, the ext_proc server, health, metrics and the admin pages. The
// command `presage serve`, the demo and the benchmarks run this very code.
//
// A [Service] opens its listeners when it is made, serves until the context of [Service.Run] ends, and
// then drains: not ready for gateways any more, new requests still taken for a moment, running ones until
// the drain period is over. The configuration and the endpoints are followed while it runs.
package serve
