package request

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
func (h *Head) Set(name string, value []byte) {}

// Reset makes the head empty.
func (h *Head) Reset() { *h = Head{} }

// Control reports whether a header is for the router, or from it, alone: clients' values of these
// must not reach an engine, and engines' must not reach a client.
func Control(name string) bool { return false }
