package request

import "github.com/cespare/xxhash/v2"

// maxLabel bounds the identifiers that clients choose.
const maxLabel = 128

// label returns a client's identifier as it may stand in a log, a label or a trace: as it is if it
// is short and of printable ASCII, else a hash of it, so that different ones stay different.
func label(v []byte) string {
	if len(v) > maxLabel {
		return hashed(xxhash.Sum64(v))
	}
	for _, c := range v {
		if c < 0x20 || c > 0x7e {
			return hashed(xxhash.Sum64(v))
		}
	}
	return string(v)
}

// hashed returns the identifier that stands in for one that cannot be shown.
func hashed(h uint64) string {
	b := make([]byte, 0, 18)
	b = append(b, "~"...)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[h>>shift&15])
	}
	return string(b)
}
