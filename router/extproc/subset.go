package extproc

import (
	"bytes"
	"net/netip"

	"github.com/presage-router/presage/router/extproc/wire"
)

// appendAddresses reads one item of a hint: addresses with or without port, separated by commas.
// What is no address names no endpoint.
func appendAddresses(dst []netip.AddrPort, item []byte) []netip.AddrPort {
	for part := range bytes.SplitSeq(item, []byte(",")) {
		s := string(bytes.TrimSpace(part))
		if ap, err := netip.ParseAddrPort(s); err == nil {
			dst = append(dst, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
		} else if a, err := netip.ParseAddr(s); err == nil {
			dst = append(dst, netip.AddrPortFrom(a.Unmap(), 0))
		}
	}
	return dst
}

// hints takes over the gateway's choice of endpoints, which may come with any message; the last
// one before the decision counts.
func (x *exchange) hints(m *wire.Message) {
	if x.request.decided || !m.Narrowed() {
		return
	}
	x.narrow, x.subset = true, x.subset[:0]
	for item := range m.Hints {
		x.subset = appendAddresses(x.subset, item)
	}
}
