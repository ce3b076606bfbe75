package extproc

import (
	"bytes"

	"github.com/presage-router/presage/features/request"
)

// obeyed are prefixes of request headers that something behind the gateway obeys as the router's
// word: the sidecars of disaggregated engines dial the address they find there.
var obeyed = [][]byte{[]byte("x-presage-"), []byte("x-prefiller-"), []byte("x-data-parallel-")}

// internal reports whether a header is between gateway, router and engines alone: what clients send
// under such a name must not reach an engine, and what engines send must not reach a client.
func internal(name []byte) bool {
	if len(name) == 0 || name[0]|0x20 != 'x' { // all of them are extensions
		return false
	}
	for _, p := range obeyed {
		if len(name) >= len(p) && bytes.EqualFold(name[:len(p)], p) {
			return true
		}
	}
	return request.Control(string(name))
}
