package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Header is one header to set; an existing one of that name is replaced.
type Header struct{ Name, Value string }

// Common is what the reply to headers, or to a whole body, may change.
type Common struct {
	Set        []Header
	Remove     []string
	ClearRoute bool   // the gateway matches its routes again
	Body       []byte // replaces a buffered body, with Replace
	Replace    bool
}

func (c *Common) empty() bool {
	return len(c.Set) == 0 && len(c.Remove) == 0 && !c.ClearRoute && !c.Replace
}

// AppendReply appends the ProcessingResponse that answers a message of headers or, one to one, of a
// body; c nil or empty changes nothing. A destination that is not empty is told to the gateway's
// load balancer in dynamic metadata.
func AppendReply(dst []byte, k Kind, c *Common, destination string) []byte {
	dst = nest(dst, tagOf(k), func(b []byte) []byte {
		if c == nil || c.empty() {
			return b
		}
		return nest(b, replyCommon, c.append)
	})
	if destination == "" {
		return dst
	}
	return nest(dst, respMetadata, func(b []byte) []byte {
		return appendEntry(b, namespaceLB, valueStruct, func(b []byte) []byte {
			return appendEntry(b, Destination, valueString, func(b []byte) []byte {
				return append(b, destination...)
			})
		})
	})
}

// AppendTrailersReply appends the ProcessingResponse that answers a message of trailers.
func AppendTrailersReply(dst []byte, k Kind) []byte {
	return nest(dst, tagOf(k), func(b []byte) []byte { return b })
}

// MaxPrefix bounds the bytes that [AppendPiece] appends.
const MaxPrefix = 32

// AppendPiece appends the ProcessingResponse that sends back n bytes of a body in
// FULL_DUPLEX_STREAMED mode, all but these bytes, which must follow.
func AppendPiece(dst []byte, k Kind, n int, end bool) []byte {
	size := 0 // of each message, innermost first
	if n > 0 {
		size = protowire.SizeTag(1) + protowire.SizeBytes(n)
	}
	if end {
		size += 2
	}
	streamed := size
	mutation := 1 + protowire.SizeBytes(streamed)
	common := 1 + protowire.SizeBytes(mutation)
	reply := 1 + protowire.SizeBytes(common)
	dst = appendLen(dst, tagOf(k), reply)
	dst = appendLen(dst, replyCommon, common)
	dst = appendLen(dst, commonBody, mutation)
	dst = appendLen(dst, bodyStreamed, streamed)
	if end {
		dst = append(dst, byte(streamedEnd), 1)
	}
	if n > 0 {
		dst = appendLen(dst, streamedBody, n)
	}
	return dst
}

// Immediate is an answer given to the client in the upstream's place.
type Immediate struct {
	Status  int
	Set     []Header
	Body    []byte
	Details string // shows in the gateway's access log as RESPONSE_CODE_DETAILS
}

// AppendImmediate appends the ProcessingResponse that makes the gateway answer by itself.
func AppendImmediate(dst []byte, im *Immediate) []byte {
	return nest(dst, respImmediate, func(b []byte) []byte {
		b = nest(b, immediateStatus, func(b []byte) []byte { return appendVarint(b, statusCode, uint64(im.Status)) })
		if len(im.Set) > 0 {
			b = nest(b, immediateHeaders, func(b []byte) []byte { return appendSet(b, im.Set) })
		}
		if len(im.Body) > 0 {
			b = append(appendLen(b, immediateBody, len(im.Body)), im.Body...)
		}
		if im.Details != "" {
			b = appendString(b, immediateDetails, im.Details)
		}
		return b
	})
}

func tagOf(k Kind) tag {
	switch k {
	case RequestHeaders:
		return 1<<3 | delimited
	case ResponseHeaders:
		return 2<<3 | delimited
	case RequestBody:
		return 3<<3 | delimited
	case ResponseBody:
		return 4<<3 | delimited
	case RequestTrailers:
		return 5<<3 | delimited
	case ResponseTrailers, Unknown:
	}
	return 6<<3 | delimited
}

func (c *Common) append(b []byte) []byte {
	if len(c.Set)+len(c.Remove) > 0 {
		b = nest(b, commonHeaders, func(b []byte) []byte {
			b = appendSet(b, c.Set)
			for _, name := range c.Remove {
				b = appendString(b, mutationRemove, name)
			}
			return b
		})
	}
	if c.Replace {
		b = nest(b, commonBody, func(b []byte) []byte {
			return append(appendLen(b, bodyWhole, len(c.Body)), c.Body...)
		})
	}
	if c.ClearRoute {
		b = appendVarint(b, commonClearRoute, 1)
	}
	return b
}

func appendSet(b []byte, set []Header) []byte {
	for i := range set {
		h := &set[i]
		b = nest(b, mutationSet, func(b []byte) []byte {
			b = nest(b, optionHeader, func(b []byte) []byte {
				return appendString(appendString(b, headerKey, h.Name), headerRawValue, h.Value)
			})
			return appendVarint(b, optionAction, overwrite)
		})
	}
	return b
}

// appendEntry appends one field of a Struct: its key, and a Value of the given kind.
func appendEntry(b []byte, key string, kind tag, content func([]byte) []byte) []byte {
	return nest(b, structFields, func(b []byte) []byte {
		b = appendString(b, entryKey, key)
		return nest(b, entryValue, func(b []byte) []byte { return nest(b, kind, content) })
	})
}

func appendVarint(b []byte, t tag, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendVarint(b, t), n)
}

func appendString(b []byte, t tag, s string) []byte {
	return append(appendLen(b, t, len(s)), s...)
}

func appendLen(b []byte, t tag, n int) []byte {
	return protowire.AppendVarint(protowire.AppendVarint(b, t), uint64(n))
}

// nest appends a delimited field holding what content appends. Contents are mostly shorter than 128
// bytes, so that one byte of length is left and the content moved only where more are needed.
func nest(b []byte, t tag, content func([]byte) []byte) []byte {
	b = protowire.AppendVarint(b, t)
	b = append(b, 0)
	at := len(b)
	b = content(b)
	n := len(b) - at
	if extra := protowire.SizeVarint(uint64(n)) - 1; extra > 0 {
		b = append(b, make([]byte, extra)...)
		copy(b[at+extra:], b[at:at+n])
	}
	protowire.AppendVarint(b[:at-1], uint64(n))
	return b
}
