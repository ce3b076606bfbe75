package discover

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

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
