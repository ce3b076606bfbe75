package discover

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/presage-router/presage/features/fleet"
)

// Parse reads an endpoints file; name is how messages call it. Each port of an entry is an endpoint
// of its own, since each data-parallel rank has one; where an entry has several, their names are
// NAME:PORT. The error, if any, joins every fault of the file, each as `name:line: where: what; do`.
func Parse(name string, data []byte) ([]*fleet.Endpoint, error) {
	d := decoder{faults: faults{file: name}, names: map[string]int{}, addrs: map[netip.AddrPort]int{}}
	if root, ok := tree(data, &d.faults); ok {
		d.root(root)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return d.endpoints, nil
}

type decoder struct {
	faults
	endpoints []*fleet.Endpoint
	names     map[string]int // line by name
	addrs     map[netip.AddrPort]int
}

func (d *decoder) root(root node) {
	if root.form != mapping {
		d.add(root.line, "", fmt.Sprintf("%s where the key endpoints is expected", root.form), "write endpoints: and the list below it")
		return
	}
	found := false
	for _, e := range root.entries {
		if e.key != "endpoints" {
			d.unknown(e, []string{"endpoints"})
			continue
		}
		found = true
		switch e.value.form {
		case list:
			for _, item := range e.value.items {
				d.entry(item)
			}
		default:
			d.add(e.value.line, "endpoints", fmt.Sprintf("%s where a list is expected", e.value.form), "write [] for no endpoint at all")
		}
	}
	if !found && d.empty() {
		d.add(root.line, "", "no key endpoints", "write endpoints: and the list below it")
	}
}

// keys of an entry, in the order of the documentation.
var keys = []string{"name", "address", "ports", "model", "engine", "gpu", "tp", "role", "adapters", "labels", "drain", "metrics"}

// engines that have a dialect in package scrape.
var engines = []string{"vllm", "sglang", "trtllm"}

var roles = []string{"both", "prefill", "decode"}

func (d *decoder) unknown(e entry, known []string) {
	do := "known here: " + strings.Join(known, ", ")
	if near := nearest(e.key, known); near != "" {
		do = "did you mean " + near + "?"
	}
	d.add(e.line, show(e.key), "no such key", do)
}

// entry reads one item of the list.
func (d *decoder) entry(n node) {
	if n.form != mapping {
		d.add(n.line, "endpoints", fmt.Sprintf("%s where an endpoint is expected", n.form), "write {name: …, address: …, ports: […]}")
		return
	}
	before := len(d.list)
	line := n.line
	if len(n.entries) > 0 {
		line = n.entries[0].line
	}
	ep := fleet.Endpoint{TP: 1, Origin: fmt.Sprintf("%s:%d", d.file, line)}
	var addr netip.Addr
	var ports []uint16
	given := map[string]bool{}
	for _, e := range n.entries {
		given[e.key] = true
		switch e.key {
		case "name":
			ep.Name = d.name(e)
		case "address":
			addr = d.address(e)
		case "ports":
			ports = d.ports(e)
		case "model":
			ep.Model = d.text(e)
		case "engine":
			ep.Engine = d.oneOf(e, engines)
		case "gpu":
			ep.GPU = d.text(e)
		case "tp":
			ep.TP = int(d.integer(e, e.value, 1024, "a tensor-parallel width"))
		case "role":
			ep.Role, _ = fleet.ParseRole(d.oneOf(e, roles))
		case "adapters":
			ep.Adapters = d.adapters(e)
		case "labels":
			ep.Labels = d.labels(e)
		case "drain":
			ep.Drain = d.flag(e)
		case "metrics":
			ep.Metrics = d.path(e)
		default:
			d.unknown(e, keys)
		}
	}
	for _, k := range []string{"name", "address", "ports"} {
		if !given[k] {
			d.add(line, show(ep.Name), "no "+k, "every endpoint needs name, address and ports")
		}
	}
	if len(d.list) == before {
		d.expand(&ep, line, addr, ports)
	}
}

// expand adds one endpoint per port.
func (d *decoder) expand(ep *fleet.Endpoint, line int, addr netip.Addr, ports []uint16) {
	for _, p := range ports {
		one := *ep
		one.Addr = netip.AddrPortFrom(addr, p)
		if len(ports) > 1 {
			one.Name = fmt.Sprintf("%s:%d", ep.Name, p)
		}
		if first, dup := d.names[one.Name]; dup {
			d.add(line, show(one.Name), fmt.Sprintf("name is used in line %d already", first), "names are unique")
			return
		}
		if first, dup := d.addrs[one.Addr]; dup {
			d.add(line, show(one.Name), fmt.Sprintf("address %s is used in line %d already", one.Addr, first), "one endpoint per address and port")
			return
		}
		d.names[one.Name], d.addrs[one.Addr] = line, line
		d.endpoints = append(d.endpoints, &one)
	}
}

// text reads a text value of printable characters.
func (d *decoder) text(e entry) string { return d.textOf(e.key, e.value) }

func (d *decoder) textOf(where string, n node) string {
	switch {
	case n.form == number || n.form == boolean:
		d.add(n.line, show(where), fmt.Sprintf("%s is %s, not text", show(n.value), n.form), fmt.Sprintf("write %q", show(n.value)))
	case n.form != text || n.value == "":
		d.add(n.line, show(where), fmt.Sprintf("%s where text is expected", n.form), "write a value, or remove the key")
	case len(n.value) > 256 || strings.ContainsFunc(n.value, func(r rune) bool { return !strconv.IsPrint(r) }):
		d.add(n.line, show(where), fmt.Sprintf("%s is longer than 256 bytes or not printable", show(n.value)), "shorten it")
	default:
		return n.value
	}
	return ""
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@"

func (d *decoder) name(e entry) string {
	s := d.text(e)
	if strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) }) {
		d.add(e.value.line, "name", fmt.Sprintf("%q has characters a name may not have", show(s)), "use letters, digits and . _ - : / @")
	}
	return s
}

func (d *decoder) address(e entry) netip.Addr {
	s := d.text(e)
	if s == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		what, do := show(s)+" is no IP address", "write an IP address; for names use fleet.endpoints.dns"
		if ap, err := netip.ParseAddrPort(s); err == nil {
			what, do = show(s)+" has a port", fmt.Sprintf("write address: %s, ports: [%d]", ap.Addr(), ap.Port())
		} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
			do = "write it without brackets"
		}
		d.add(e.value.line, "address", what, do)
		return a
	}
	if a = a.Unmap(); a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		d.add(e.value.line, "address", show(s)+" is no address of one server", "write the address that requests go to")
	}
	return a
}

func (d *decoder) ports(e entry) (ports []uint16) {
	if e.value.form != list || len(e.value.items) == 0 {
		d.add(e.value.line, "ports", fmt.Sprintf("%s where a list of ports is expected", empty(e.value)), "write [8000], or one port per rank")
		return nil
	}
	for _, item := range e.value.items {
		p := uint16(d.integer(e, item, 65535, "a port"))
		if p != 0 && slices.Contains(ports, p) {
			d.add(item.line, "ports", fmt.Sprintf("%d is given twice", p), "keep one")
		}
		ports = append(ports, p)
	}
	return ports
}

// empty names a value's form, an empty list as such.
func empty(n node) string {
	if n.form == list {
		return "an empty list"
	}
	return n.form.String()
}

// integer reads a whole number from 1 to top; 0 after a fault.
func (d *decoder) integer(e entry, n node, top uint64, what string) uint64 {
	v, err := strconv.ParseUint(n.value, 10, 32)
	if n.form != number || err != nil || v < 1 || v > top || n.value[0] == '0' {
		given := show(n.value)
		if n.form != number && n.form != text {
			given = n.form.String()
		}
		d.add(n.line, e.key, fmt.Sprintf("%s is not %s", given, what), fmt.Sprintf("write a whole number from 1 to %d", top))
		return 0
	}
	return v
}

func (d *decoder) oneOf(e entry, known []string) string {
	s := d.text(e)
	if s == "" || slices.Contains(known, s) {
		return s
	}
	do := "write one of " + strings.Join(known, ", ")
	if near := nearest(s, known); near != "" {
		do = "did you mean " + near + "?"
	}
	d.add(e.value.line, e.key, show(s)+" unknown", do)
	return ""
}

func (d *decoder) flag(e entry) bool {
	if e.value.form != boolean {
		d.add(e.value.line, e.key, fmt.Sprintf("%s where true or false is expected", e.value.form), "write true or false")
	}
	return strings.EqualFold(e.value.value, "true")
}

func (d *decoder) adapters(e entry) (names []string) {
	if e.value.form != list {
		d.add(e.value.line, e.key, fmt.Sprintf("%s where a list of names is expected", e.value.form), "write [name, …]")
		return nil
	}
	for _, item := range e.value.items {
		s := d.textOf(e.key, item)
		if s != "" && slices.Contains(names, s) {
			d.add(item.line, e.key, show(s)+" is given twice", "keep one")
		}
		names = append(names, s)
	}
	return names
}

func (d *decoder) labels(e entry) map[string]string {
	if e.value.form != mapping {
		d.add(e.value.line, e.key, fmt.Sprintf("%s where key: value pairs are expected", e.value.form), "write {zone: a}")
		return nil
	}
	out := make(map[string]string, len(e.value.entries))
	for _, l := range e.value.entries {
		d.textOf("labels", node{form: text, line: l.line, value: l.key})
		out[l.key] = d.textOf("labels."+l.key, l.value)
	}
	return out
}

func (d *decoder) path(e entry) string {
	s := d.text(e)
	if s != "" && (s[0] != '/' || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' })) {
		d.add(e.value.line, e.key, show(s)+" is no path", "write it as /metrics")
	}
	return s
}
