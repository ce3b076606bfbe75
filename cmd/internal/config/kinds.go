package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// scalar reads a plain value, refusing lists, mappings and nothing.
func (d *decoder) scalar(key string, n *node, want string) (string, bool) {
	switch n.form {
	case text, number, boolean:
		return n.value, true
	case null:
		d.fault(n.line, key, "no value", "write "+want+" or remove the key")
	default:
		d.fault(n.line, key, n.form.String()+" where "+want+" is expected", "write one value")
	}
	return "", false
}

func textOption(key, about, want string, dst *string) option {
	return option{key: key, kind: want, def: orNone(*dst), about: about, set: func(d *decoder, key string, n *node) {
		s, ok := d.scalar(key, n, want)
		switch {
		case !ok:
		case n.form != text:
			d.fault(n.line, key, fmt.Sprintf("%s is %s", shown(s), n.form), fmt.Sprintf("quote it: %q", s))
		case strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, unicode.IsControl):
			d.fault(n.line, key, "empty, or with spaces around it or control characters in it", "write "+want)
		default:
			*dst = s
		}
	}}
}

// dirOption is a folder; "" is none.
func dirOption(key, about string, dst *string) option {
	o := textOption(key, about, "a folder", dst)
	set := o.set
	o.set = func(d *decoder, key string, n *node) {
		if n.form == text && n.value == "" {
			*dst = ""
			return
		}
		set(d, key, n)
	}
	return o
}

func choiceOption(key, about string, dst *string, among ...string) option {
	kind := strings.Join(among, ", ")
	return option{key: key, kind: kind, def: *dst, about: about, set: func(d *decoder, key string, n *node) {
		if s, ok := d.scalar(key, n, "one of "+kind); ok {
			if !slices.Contains(among, s) {
				d.fault(n.line, key, fmt.Sprintf("%q unknown", shown(s)), oneOf(s, among))
				return
			}
			*dst = s
		}
	}}
}

// oneOf is the remedy for a name that is not among the known ones.
func oneOf(s string, among []string) string {
	do := "one of " + strings.Join(among, ", ")
	if near := meant(s, among); near != "" {
		do = "did you mean " + near + "? " + do
	}
	return do
}

func boolOption(key, about string, dst *bool) option {
	return option{key: key, kind: "true or false", def: strconv.FormatBool(*dst), about: about, set: func(d *decoder, key string, n *node) {
		s, ok := d.scalar(key, n, "true or false")
		if !ok {
			return
		}
		if n.form != boolean {
			d.fault(n.line, key, fmt.Sprintf("%q is neither true nor false", shown(s)), "write true or false, without quotes")
			return
		}
		*dst = s == "true"
	}}
}

// switchOption is on or off, as YAML's older true and false.
func switchOption(key, about string, dst *bool) option {
	state := "off"
	if *dst {
		state = "on"
	}
	o := choiceOption(key, about, &state, "on", "off")
	set := o.set
	o.set = func(d *decoder, key string, n *node) {
		set(d, key, n)
		*dst = state == "on"
	}
	return o
}

func intOption(key, about string, dst *int, least, most int) option {
	kind := fmt.Sprintf("whole number, %d to %d", least, most)
	def := strconv.Itoa(*dst)
	if *dst < least {
		def = "none"
	}
	return option{key: key, kind: kind, def: def, about: about, set: func(d *decoder, key string, n *node) {
		if v, ok := d.whole(key, n, least, most); ok {
			*dst = v
		}
	}}
}

func (d *decoder) whole(key string, n *node, least, most int) (int, bool) {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	s, ok := d.scalar(key, n, want)
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	switch {
	case n.quoted:
		d.fault(n.line, key, fmt.Sprintf("%q is text", shown(s)), "write "+want+", without quotes")
	case n.form != number || err != nil:
		d.fault(n.line, key, fmt.Sprintf("%q is no whole number in range", shown(s)), "write "+want)
	case v < least || v > most:
		d.fault(n.line, key, fmt.Sprintf("%d is out of range", v), "write "+want)
	default:
		return v, true
	}
	return 0, false
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
