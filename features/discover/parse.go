package discover

import (
	"fmt"
	"net/netip"
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
