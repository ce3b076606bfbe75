package gateway

import (
	"crypto/rand"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// hopByHop headers belong to one connection and are not forwarded.
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
}

// removeHopByHop drops them, and what the Connection header names.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// cleanRequest returns the client's headers without what it must not decide, and with the request
// id and scheme that a proxy adds.
func cleanRequest(r *http.Request) http.Header {
	h := r.Header.Clone()
	removeHopByHop(h)
	h.Del(destinationHeader)
	if h.Get("X-Request-Id") == "" {
		h.Set("X-Request-Id", rand.Text())
	}
	if h.Get("X-Forwarded-Proto") == "" {
		h.Set("X-Forwarded-Proto", "http")
	}
	return h
}

// hasBody reports whether body messages follow the request headers.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

func field(key, value string) *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: key, RawValue: []byte(value)}
}

func appendFields(out []*corev3.HeaderValue, h http.Header) []*corev3.HeaderValue {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key := strings.ToLower(name)
		for _, v := range h[name] {
			out = append(out, field(key, v))
		}
	}
	return out
}

// requestMap is the header map of a request message.
func requestMap(r *http.Request, h http.Header) *corev3.HeaderMap {
	out := make([]*corev3.HeaderValue, 0, len(h)+5)
	out = append(out, field(":authority", r.Host), field(":path", r.URL.RequestURI()), field(":method", r.Method), field(":scheme", "http"))
	if r.ContentLength > 0 {
		out = append(out, field("content-length", strconv.FormatInt(r.ContentLength, 10)))
	}
	rest := h.Clone()
	rest.Del("Content-Length")
	return &corev3.HeaderMap{Headers: appendFields(out, rest)}
}

// responseMap is the header map of a response message.
func responseMap(resp *http.Response) *corev3.HeaderMap {
	out := []*corev3.HeaderValue{field(":status", strconv.Itoa(resp.StatusCode))}
	return &corev3.HeaderMap{Headers: appendFields(out, resp.Header)}
}

// mutate applies the picker's changes as Envoy's default rules allow them: routing headers other
// than the path and Envoy's own headers stay as they are. It returns the new :path, or "".
func mutate(h http.Header, m *extproc.HeaderMutation) (path string) {
	for _, name := range m.GetRemoveHeaders() {
		if changeable(name) && name != ":path" {
			h.Del(name)
		}
	}
	for _, o := range m.GetSetHeaders() {
		name, value := o.GetHeader().GetKey(), string(o.GetHeader().GetRawValue())
		if value == "" {
			value = o.GetHeader().GetValue()
		}
		switch {
		case name == ":path":
			path = value
		case !changeable(name):
		case appends(o):
			h.Add(name, value)
		case o.GetAppendAction() == corev3.HeaderValueOption_ADD_IF_ABSENT && h.Get(name) != "":
		case o.GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS && h.Get(name) == "":
		default:
			h.Set(name, value)
		}
	}
	return path
}

// appends reports whether an option adds a value beside those present. The enum's zero means
// append, unless the deprecated flag says otherwise.
func appends(o *corev3.HeaderValueOption) bool {
	if o.GetAppend() != nil { //nolint:staticcheck // older pickers still send it, and Envoy still reads it
		return o.GetAppend().GetValue() //nolint:staticcheck // as above
	}
	return o.GetAppendAction() == corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
}

func changeable(name string) bool {
	name = strings.ToLower(name)
	return name != "" && name[0] != ':' && name != "host" && name != "content-length" && name != "transfer-encoding" && !strings.HasPrefix(name, "x-envoy")
}
