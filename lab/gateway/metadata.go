package gateway

import (
	"net/http"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// Keys of the endpoint picker protocol (GAIE proposal 004) and of Envoy's attributes.
const (
	destinationHeader = "X-Gateway-Destination-Endpoint"
	lbNamespace       = "envoy.lb"
	destinationKey    = "x-gateway-destination-endpoint"
	servedKey         = "x-gateway-destination-endpoint-served"
	subsetNamespace   = "envoy.lb.subset_hint"
	subsetKey         = "x-gateway-destination-endpoint-subset"
	attributesKey     = "envoy.filters.http.ext_proc"
)

func object(key, value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
}

// subsetHint is the metadata that every message of a request carries, or nil. As with Envoy's
// header_to_metadata filter an empty header makes no key.
func subsetHint(h http.Header, name string) *corev3.Metadata {
	if name == "" || h.Get(name) == "" {
		return nil
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{subsetNamespace: object(subsetKey, h.Get(name))}}
}

// withServed adds the endpoint that answered to the metadata of the response headers.
func withServed(hint *corev3.Metadata, address string) *corev3.Metadata {
	m := &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{lbNamespace: object(servedKey, address)}}
	for k, v := range hint.GetFilterMetadata() {
		m.FilterMetadata[k] = v
	}
	return m
}

// destinations reads where a request may go, in order of preference.
func (d Destination) destinations(h http.Header, dynamic *structpb.Struct) []string {
	list := h.Get(destinationHeader)
	if d == OriginalDst {
		if list == "" || strings.ContainsAny(list, ", ") {
			return nil
		}
		return []string{list}
	}
	if v := dynamic.GetFields()[lbNamespace].GetStructValue().GetFields()[destinationKey].GetStringValue(); v != "" {
		list = v
	}
	var out []string
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); strings.Contains(s, ":") {
			out = append(out, s)
		}
	}
	return out
}
