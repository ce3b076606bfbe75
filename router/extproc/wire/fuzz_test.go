package wire

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// FuzzDecode: no bytes break the decoder, and whatever the generated types understand, as they write
// it, we understand alike.
func FuzzDecode(f *testing.F) {
	md := &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.lb":             structOf(f, map[string]any{"x-gateway-destination-endpoint-served": "10.0.0.8:8000"}),
		"envoy.lb.subset_hint": structOf(f, map[string]any{"x-gateway-destination-endpoint-subset": []any{"10.0.0.1:8000", 7}}),
	}}
	headers := &pb.HttpHeaders{EndOfStream: true, Headers: &core.HeaderMap{Headers: []*core.HeaderValue{{Key: ":path", RawValue: []byte("/x")}, {Key: "a", Value: "b"}}}}
	for _, m := range []*pb.ProcessingRequest{
		{MetadataContext: md, Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: headers}, ProtocolConfig: &pb.ProtocolConfiguration{RequestBodyMode: filter.ProcessingMode_FULL_DUPLEX_STREAMED}},
		{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: []byte("abc"), EndOfStream: true}}, ObservabilityMode: true},
		{Request: &pb.ProcessingRequest_ResponseTrailers{ResponseTrailers: &pb.HttpTrailers{Trailers: headers.Headers}}},
		{Attributes: map[string]*structpb.Struct{"envoy.filters.http.ext_proc": structOf(f, map[string]any{"upstream.address": "10.0.0.7:8000"})}},
	} {
		f.Add(encode(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		_ = m.Decode(b) // any bytes: an error or not, never a panic
		m.Served()
		for range m.Hints {
		}
		headersOf(&m)

		var want pb.ProcessingRequest
		if proto.Unmarshal(b, &want) != nil {
			return
		}
		canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(&want)
		if err != nil {
			t.Skip(err)
		}
		if err := m.Decode(canonical); err != nil {
			t.Fatalf("%v: %v", &want, err)
		}
		compare(t, &m, &want)
	})
}

func compare(t *testing.T, m *Message, want *pb.ProcessingRequest) {
	t.Helper()
	kind, end, body, headers := contents(want)
	if m.Kind != kind || m.End != end || string(m.Body) != string(body) || m.Observe != want.ObservabilityMode || m.Configured != (want.ProtocolConfig != nil) {
		t.Fatalf("decoded %+v, want %v", m, want)
	}
	var list []pair
	for _, h := range headers.GetHeaders() {
		v := string(h.RawValue)
		if v == "" {
			v = h.Value
		}
		list = append(list, pair{h.Key, v})
	}
	if d := cmp.Diff(list, headersOf(m)); d != "" {
		t.Fatal(d)
	}
	served := want.GetMetadataContext().GetFilterMetadata()["envoy.lb"].GetFields()[Served].GetStringValue()
	if served == "" {
		served = want.GetAttributes()["envoy.filters.http.ext_proc"].GetFields()["upstream.address"].GetStringValue()
	}
	if m.Served() != served {
		t.Fatalf("served %q, want %q", m.Served(), served)
	}
	v, narrowed := want.GetMetadataContext().GetFilterMetadata()["envoy.lb.subset_hint"].GetFields()[Subset]
	var hints, got []string
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		hints = append(hints, k.StringValue)
	case *structpb.Value_ListValue:
		for _, item := range k.ListValue.GetValues() {
			if s, ok := item.GetKind().(*structpb.Value_StringValue); ok {
				hints = append(hints, s.StringValue)
			}
		}
	}
	for item := range m.Hints {
		got = append(got, string(item))
	}
	if m.Narrowed() != narrowed || !cmp.Equal(got, hints) {
		t.Fatalf("hints %q, want %q", got, hints)
	}
}

func contents(r *pb.ProcessingRequest) (Kind, bool, []byte, *core.HeaderMap) {
	switch p := r.Request.(type) {
	case *pb.ProcessingRequest_RequestHeaders:
		return RequestHeaders, p.RequestHeaders.GetEndOfStream(), nil, p.RequestHeaders.GetHeaders()
	case *pb.ProcessingRequest_ResponseHeaders:
		return ResponseHeaders, p.ResponseHeaders.GetEndOfStream(), nil, p.ResponseHeaders.GetHeaders()
	case *pb.ProcessingRequest_RequestBody:
		return RequestBody, p.RequestBody.GetEndOfStream(), p.RequestBody.GetBody(), nil
	case *pb.ProcessingRequest_ResponseBody:
		return ResponseBody, p.ResponseBody.GetEndOfStream(), p.ResponseBody.GetBody(), nil
	case *pb.ProcessingRequest_RequestTrailers:
		return RequestTrailers, false, nil, p.RequestTrailers.GetTrailers()
	case *pb.ProcessingRequest_ResponseTrailers:
		return ResponseTrailers, false, nil, p.ResponseTrailers.GetTrailers()
	}
	return Unknown, false, nil, nil
}
