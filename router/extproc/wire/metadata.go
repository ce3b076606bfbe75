package wire

// Names of the protocol in metadata and attributes.
const (
	// Destination is the request header, and the key in the namespace envoy.lb, that tells the
	// gateway where the request goes.
	Destination = "x-gateway-destination-endpoint"
	// Served is the key in the namespace envoy.lb under which the gateway tells where it went.
	Served = "x-gateway-destination-endpoint-served"
	// Subset is the key in the namespace envoy.lb.subset_hint that narrows the choice.
	Subset = "x-gateway-destination-endpoint-subset"

	namespaceLB     = "envoy.lb"
	namespaceSubset = "envoy.lb.subset_hint"
	filterName      = "envoy.filters.http.ext_proc"
	upstreamAddress = "upstream.address"
)

// decodeMetadata keeps the two namespaces that are read.
func (m *Message) decodeMetadata(b []byte) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag != metadataFilter {
			continue
		}
		key, value, ok := entry(f.data)
		if !ok {
			return false
		}
		switch string(key) {
		case namespaceLB:
			m.lb = value
		case namespaceSubset:
			m.subset, m.narrowed = value, true
		}
	}
	return !f.bad
}

// Served returns the address the gateway says it used, or "": from metadata, which knows it where
// the gateway balances by override_host, else from the attribute upstream.address.
func (m *Message) Served() string {
	if v := lookup(m.lb, Served); v != nil {
		if s := stringOf(v); s != "" {
			return s
		}
	}
	return stringOf(lookup(m.attrs, upstreamAddress))
}

// Narrowed reports whether the gateway narrows the choice of endpoints, be it to none.
func (m *Message) Narrowed() bool { return m.narrowed && lookup(m.subset, Subset) != nil }

// Hints yields the addresses that the gateway allows, as it wrote them: the items of a list, or one
// string of them, separated by commas.
func (m *Message) Hints(yield func(item []byte) bool) {
	f := fields{rest: lookup(m.subset, Subset)}
	for f.next() {
		switch f.tag {
		case valueString:
			if !yield(f.data) {
				return
			}
		case valueList:
			if !listed(f.data, yield) {
				return
			}
		}
	}
}

// listed yields the strings of an encoded ListValue.
func listed(b []byte, yield func(item []byte) bool) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag != listValues {
			continue
		}
		item := fields{rest: f.data}
		if item.next() && item.tag == valueString && !yield(item.data) {
			return false
		}
	}
	return true
}

// lookup returns the encoded Value of a key of a Struct, or nil. The last of equal keys counts.
func lookup(b []byte, key string) []byte {
	var found []byte
	f := fields{rest: b}
	for f.next() {
		if f.tag != structFields {
			continue
		}
		if k, v, ok := entry(f.data); ok && string(k) == key {
			if found = v; v == nil {
				found = []byte{}
			}
		}
	}
	return found
}

// stringOf returns the string of an encoded Value, or "".
func stringOf(b []byte) string {
	s := ""
	f := fields{rest: b}
	for f.next() {
		if f.tag == valueString {
			s = string(f.data)
		}
	}
	return s
}
