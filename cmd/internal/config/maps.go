package config

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// maxEntries bounds the maps of a configuration.
const maxEntries = 1024

// pairs walks a mapping with free keys; nothing is an empty mapping.
func (d *decoder) pairs(key string, n *node, want string, each func(key string, e entry)) {
	switch {
	case n.form == null:
	case n.form != mapping:
		d.fault(n.line, key, fmt.Sprintf("%s where %s is expected", n.form, want), "write name: value")
	case len(n.entries) > maxEntries:
		d.fault(n.line, key, fmt.Sprintf("%d entries: more than %d", len(n.entries), maxEntries), "remove some")
	default:
		for _, e := range n.entries {
			at := join(key, e.key)
			d.lines[at] = e.line
			if e.key == "" || strings.ContainsFunc(e.key, unicode.IsControl) {
				d.fault(e.line, shown(at), "not a usable name", "write a plain name")
				continue
			}
			each(at, e)
		}
	}
}

func rewriteOption(dst *map[string]string) option {
	return option{
		key: "request.rewrite", kind: "mapping of model name to model name", def: "none",
		about: "Model names that are replaced before the request is routed and sent, `alias: model`. The alias `\"*\"` stands for every name not listed, and for requests that name no model.",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]string)
			d.pairs(key, n, "a mapping of model names", func(at string, e entry) {
				s, ok := d.scalar(at, e.value, "a model name")
				switch {
				case !ok:
				case e.value.form != text || s == "" || strings.ContainsFunc(s, unicode.IsControl):
					d.fault(e.value.line, at, fmt.Sprintf("%q is no model name", shown(s)), "write the model's name, in quotes if it looks like a number")
				default:
					out[e.key] = s
				}
			})
			if len(out) > 0 {
				*dst = out
			}
		},
	}
}

func prioritiesOption(dst *map[string]int) option {
	return option{
		key: "priorities", kind: "mapping of objective to whole number", def: "none",
		about: "Priority of the objectives that requests name in `x-gateway-inference-objective`; higher is more urgent, objectives not listed are 0.",
		set: func(d *decoder, key string, n *node) {
			out := make(map[string]int)
			d.pairs(key, n, "a mapping of priorities", func(at string, e entry) {
				if v, ok := d.whole(at, e.value, math.MinInt32, math.MaxInt32); ok {
					out[e.key] = v
				}
			})
			if len(out) > 0 {
				*dst = out
			}
		},
	}
}
