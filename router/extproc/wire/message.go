package wire

import "bytes"

// Kind says which part of an HTTP exchange a message carries.
type Kind uint8

// The kinds of messages. Others (flow control, and what later versions of the gateway may send) are
// Unknown: they need no answer.
const (
	Unknown Kind = iota
	RequestHeaders
	RequestBody
	RequestTrailers
	ResponseHeaders
	ResponseBody
	ResponseTrailers
)

// Mode says how the gateway sends a body and what it expects back (ProcessingMode.BodySendMode).
type Mode uint8

// The body modes.
const (
	None            Mode = iota // the body is not sent
	Streamed                    // chunk by chunk; each waits for its reply
	Buffered                    // whole, in one message; the headers wait for their reply first
	BufferedPartial             // as Buffered, cut at the gateway's buffer limit
	FullDuplex                  // chunk by chunk without waiting; all of the body must be sent back
)

// Message is one decoded ProcessingRequest. Its slices alias the decoded bytes and are valid as
// long as these are.
type Message struct {
	Kind       Kind
	End        bool // end_of_stream
	Observe    bool // observability_mode: no reply is read
	Configured bool // carries a protocol_config, as the first message of a stream does
	Request    Mode // of the request body, with Configured
	Response   Mode // of the response body, with Configured
	Body       []byte
	BodyAt     int // where Body starts in the decoded bytes

	headers  []byte // HeaderMap
	lb       []byte // Struct: metadata_context["envoy.lb"]
	subset   []byte // Struct: metadata_context["envoy.lb.subset_hint"]
	narrowed bool   // subset is present
	attrs    []byte // Struct: attributes["envoy.filters.http.ext_proc"]
}

// Decode reads a message. Repeated parts of one message, which the gateway never sends, replace
// each other.
func (m *Message) Decode(b []byte) error {
	*m = Message{}
	f := fields{rest: b}
	for f.next() {
		ok := true
		switch f.tag {
		case reqHeaders, reqRespHeaders, reqTrailers, reqRespTrailers:
			ok = m.decodeHeaders(kindOf(f.tag), f.data)
		case reqBody, reqRespBody:
			ok = m.decodeBody(kindOf(f.tag), f.data)
			m.BodyAt = cap(b) - cap(m.Body)
		case reqMetadata:
			ok = m.decodeMetadata(f.data)
		case reqAttributes:
			var key, value []byte
			if key, value, ok = entry(f.data); string(key) == filterName {
				m.attrs = value
			}
		case reqObserve:
			m.Observe = f.n != 0
		case reqConfig:
			ok = m.decodeConfig(f.data)
		}
		if !ok {
			return errMalformed
		}
	}
	if f.bad {
		return errMalformed
	}
	return nil
}

func kindOf(t tag) Kind {
	switch t {
	case reqHeaders:
		return RequestHeaders
	case reqBody:
		return RequestBody
	case reqTrailers:
		return RequestTrailers
	case reqRespHeaders:
		return ResponseHeaders
	case reqRespBody:
		return ResponseBody
	case reqRespTrailers:
		return ResponseTrailers
	}
	return Unknown
}

func (m *Message) decodeHeaders(k Kind, b []byte) bool {
	m.Kind, m.End, m.headers, m.Body = k, false, nil, nil
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case httpHeaders:
			m.headers = f.data
		case httpHeadersEnd:
			m.End = f.n != 0
		}
	}
	return !f.bad
}

func (m *Message) decodeBody(k Kind, b []byte) bool {
	m.Kind, m.End, m.headers, m.Body = k, false, nil, b[len(b):]
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case httpBody:
			m.Body = f.data
		case httpBodyEnd:
			m.End = f.n != 0
		}
	}
	return !f.bad
}

func (m *Message) decodeConfig(b []byte) bool {
	m.Configured, m.Request, m.Response = true, None, None
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case configRequestMode:
			m.Request = modeOf(f.n)
		case configResponseMode:
			m.Response = modeOf(f.n)
		}
	}
	return !f.bad
}

// modeOf takes modes of the future for None: whatever they send is answered one to one.
func modeOf(n uint64) Mode {
	if n > uint64(FullDuplex) {
		return None
	}
	return Mode(n)
}

// Headers yields the headers or trailers of the message in their order, names as received.
func (m *Message) Headers(yield func(name, value []byte) bool) {
	f := fields{rest: m.headers}
	for f.next() {
		if f.tag != mapHeaders {
			continue
		}
		var name, value, raw []byte
		h := fields{rest: f.data}
		for h.next() {
			switch h.tag {
			case headerKey:
				name = h.data
			case headerValue:
				value = h.data
			case headerRawValue:
				raw = h.data
			}
		}
		if len(raw) > 0 { // the gateway fills one of the two
			value = raw
		}
		if !yield(name, value) {
			return
		}
	}
}

// Header returns the value of the first header of a name, which must be in lower case.
func (m *Message) Header(name string) (value []byte, ok bool) {
	for n, v := range m.Headers {
		if len(n) == len(name) && bytes.EqualFold(n, []byte(name)) {
			return v, true
		}
	}
	return nil, false
}
