package request

import "strings"

// Head is the headers of a request that matter to its routing. The zero value is empty and ready.
// Values are not copied: they must stay unchanged until [Parser.Head] returns.
type Head struct {
	method, path, contentType, encoding, upgrade []byte

	ttft, tpot, ttftAlias, tpotAlias []byte
	session, fairness, id            []byte
	objective, objectiveAlias        []byte
}

// Set notes one header, a pseudo header such as ":path" included. Names are compared without
// regard to case; names that do not matter are ignored; of repeated headers the first counts.
func (h *Head) Set(name string, value []byte) {
	at := h.at(name)
	if at == nil {
		at = h.at(strings.ToLower(name))
	}
	if at != nil && *at == nil {
		if value == nil {
			value = []byte{}
		}
		*at = value
	}
}

// at returns the place of a header's value.
func (h *Head) at(name string) *[]byte {
	switch name {
	case ":method":
		return &h.method
	case ":path":
		return &h.path
	case "content-type":
		return &h.contentType
	case "content-encoding":
		return &h.encoding
	case "upgrade":
		return &h.upgrade
	case "x-llm-d-slo-ttft-ms":
		return &h.ttft
	case "x-llm-d-slo-tpot-ms":
		return &h.tpot
	case "x-slo-ttft-ms":
		return &h.ttftAlias
	case "x-slo-tpot-ms":
		return &h.tpotAlias
	case "x-session-id":
		return &h.session
	case "x-gateway-inference-fairness-id":
		return &h.fairness
	case "x-gateway-inference-objective":
		return &h.objective
	case "x-llm-d-inference-objective":
		return &h.objectiveAlias
	case "x-request-id":
		return &h.id
	}
	return nil
}

// Reset makes the head empty.
func (h *Head) Reset() { *h = Head{} }

// Control reports whether a header is between gateway and router alone: what clients send under
// such a name must not reach an engine, and what engines send must not reach a client.
func Control(name string) bool {
	return hasPrefixFold(name, "x-gateway-") || hasPrefixFold(name, "x-llm-d-") || hasPrefixFold(name, "x-slo-")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// first returns the first value that was given.
func first(a, b []byte) []byte {
	if a != nil {
		return a
	}
	return b
}
