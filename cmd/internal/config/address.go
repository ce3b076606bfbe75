package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// addressOption reads host:port to listen on; optional ones may be "off".
func addressOption(key, about string, dst *string, optional bool) option {
	kind := "host:port to listen on"
	if optional {
		kind += ", or off"
	}
	return option{key: key, kind: kind, def: *dst, about: about, set: func(d *decoder, key string, n *node) {
		want := `an address such as ":9002" or "127.0.0.1:9002"`
		s, ok := d.scalar(key, n, want)
		if !ok {
			return
		}
		if optional && s == "off" {
			*dst = ""
			return
		}
		host, port, err := net.SplitHostPort(s)
		if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || !isHost(host) {
			d.fault(n.line, key, fmt.Sprintf("%q is no host:port", shown(s)), "write "+want)
			return
		}
		*dst = s
	}}
}

// isHost reports whether s is empty, an IP address or a DNS name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil || s == "" {
		return true
	}
	return len(s) <= 253 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

func hostsOption(dst *[]string) option {
	return option{
		key: "admin.hosts", kind: "list of host names", def: "none",
		about: "Host names by which the admin address may be called, beside `localhost` and plain addresses; others are refused, as pages of strangers could carry them.",
		set: func(d *decoder, key string, n *node) {
			const want = "a host name"
			if n.form != sequence {
				d.fault(n.line, key, n.form.String()+" where a list of host names is expected", "write [name, name]")
				return
			}
			for i, item := range n.items {
				at := fmt.Sprintf("%s[%d]", key, i)
				s, ok := d.scalar(at, item, want)
				switch {
				case !ok:
				case s == "" || !isHost(s):
					d.fault(item.line, at, fmt.Sprintf("%q is no host name", shown(s)), "write the name alone, without scheme, port or path")
				default:
					*dst = append(*dst, s)
				}
			}
		},
	}
}
