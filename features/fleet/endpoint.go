package fleet

import (
	"net/netip"
	"slices"
)

// Role says which phase of a request an endpoint serves.
type Role uint8

// The roles an endpoint can have under prefill/decode disaggregation.
const (
	RoleBoth    Role = iota // prefill and decode, the usual case
	RolePrefill             // prefill only: never the answering endpoint
	RoleDecode              // decode; may also prefill short prompts
)

// ParseRole reads a role from its name in an endpoints file; the empty name is [RoleBoth].
func ParseRole(s string) (Role, bool) {
	switch s {
	case "", "both":
		return RoleBoth, true
	case "prefill":
		return RolePrefill, true
	case "decode":
		return RoleDecode, true
	}
	return RoleBoth, false
}

// String returns the role's name in an endpoints file.
func (r Role) String() string {
	switch r {
	case RoleBoth:
		return "both"
	case RolePrefill:
		return "prefill"
	case RoleDecode:
		return "decode"
	}
	return "unknown"
}

// Endpoint is one address that answers requests: one port of one server, so one data-parallel rank.
// It is immutable once given to a [Fleet]; a changed description is a new Endpoint.
type Endpoint struct {
	Name     string            // unique in the fleet, shown to operators
	Addr     netip.AddrPort    // where the gateway sends requests; unique in the fleet
	Metrics  string            // path of the metrics page; empty means the engine's usual one
	Model    string            // base model served; empty means any
	Engine   string            // vllm, sglang, trtllm; empty means unknown
	GPU      string            // GPU type, as H100; empty means unknown
	TP       int               // tensor-parallel width, at least 1
	Role     Role              // prefill, decode or both
	Adapters []string          // LoRA adapters configured by the operator
	Labels   map[string]string // free labels
	Drain    bool              // take no new requests; open ones run on
	Origin   string            // where it was described, as endpoints.yaml:3, for messages; no part of its identity
}

// Serves reports whether the endpoint answers for a model name: its base model, one of its
// configured adapters, or anything when it names no model.
func (e *Endpoint) Serves(model string) bool {
	return e.Model == "" || e.Model == model || slices.Contains(e.Adapters, model)
}

// Same reports whether two descriptions are the same instance: a difference in name,
// address, engine, model, hardware or role makes a new one, a difference in labels, adapters or
// draining does not.
func (e *Endpoint) Same(o *Endpoint) bool {
	return e.Name == o.Name && e.Addr == o.Addr && e.Model == o.Model && e.Engine == o.Engine &&
		e.GPU == o.GPU && e.TP == o.TP && e.Role == o.Role
}
