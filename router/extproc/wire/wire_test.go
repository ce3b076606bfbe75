package wire

import (
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

func encode(t testing.TB, m *pb.ProcessingRequest) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func structOf(t testing.TB, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type pair struct{ Name, Value string }

func headersOf(m *Message) []pair {
	var out []pair
	for n, v := range m.Headers {
		out = append(out, pair{string(n), string(v)})
	}
	return out
}

func TestDecodeHeaders(t *testing.T) {
	b := encode(t, &pb.ProcessingRequest{
		ProtocolConfig: &pb.ProtocolConfiguration{RequestBodyMode: filter.ProcessingMode_FULL_DUPLEX_STREAMED, ResponseBodyMode: filter.ProcessingMode_BUFFERED},
		Attributes:     map[string]*structpb.Struct{"envoy.filters.http.ext_proc": structOf(t, map[string]any{"upstream.address": "10.0.0.7:8000"}), "other": structOf(t, map[string]any{"a": 1})},
		MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb": structOf(t, map[string]any{"x-gateway-destination-endpoint-served": "10.0.0.8:8000", "n": 1}),
			"other":    structOf(t, map[string]any{"x-gateway-destination-endpoint-served": "10.9.9.9:1"}),
		}},
		Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{EndOfStream: true, Headers: &core.HeaderMap{Headers: []*core.HeaderValue{
			{Key: ":method", RawValue: []byte("GET")}, {Key: "plain", Value: "v"}, {Key: "both", Value: "v", RawValue: []byte("raw")}, {Key: "empty"}, {Key: "twice", RawValue: []byte("1")}, {Key: "twice", RawValue: []byte("2")},
		}}}},
	})
	var m Message
	if err := m.Decode(b); err != nil {
		t.Fatal(err)
	}
	if m.Kind != RequestHeaders || !m.End || !m.Configured || m.Request != FullDuplex || m.Response != Buffered || m.Observe {
		t.Errorf("decoded %+v", m)
	}
	want := []pair{{":method", "GET"}, {"plain", "v"}, {"both", "raw"}, {"empty", ""}, {"twice", "1"}, {"twice", "2"}}
	if d := cmp.Diff(want, headersOf(&m)); d != "" {
		t.Error(d)
	}
	if got := m.Served(); got != "10.0.0.8:8000" {
		t.Errorf("served %q", got)
	}
	if v, ok := m.Header("both"); !ok || string(v) != "raw" {
		t.Errorf("header both: %q, %v", v, ok)
	}
	if _, ok := m.Header("absent"); ok {
		t.Error("header absent is present")
	}
}

func TestServedFallsBackToTheAttribute(t *testing.T) {
	for name, m := range map[string]*pb.ProcessingRequest{
		"attribute alone": {Attributes: map[string]*structpb.Struct{"envoy.filters.http.ext_proc": structOf(t, map[string]any{"upstream.address": "10.0.0.7:8000"})}},
		"metadata without it": {
			Attributes:      map[string]*structpb.Struct{"envoy.filters.http.ext_proc": structOf(t, map[string]any{"upstream.address": "10.0.0.7:8000"})},
			MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb": structOf(t, map[string]any{"x-gateway-destination-endpoint-served": 7})}},
		},
	} {
		var got Message
		if err := got.Decode(encode(t, m)); err != nil {
			t.Fatal(err)
		}
		if s := got.Served(); s != "10.0.0.7:8000" {
			t.Errorf("%s: served %q", name, s)
		}
	}
	var none Message
	if s := none.Served(); s != "" {
		t.Errorf("nothing said, served %q", s)
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		name   string
		value  any
		narrow bool
		want   []string
	}{
		{"list", []any{"10.0.0.1:8000", "10.0.0.2"}, true, []string{"10.0.0.1:8000", "10.0.0.2"}},
		{"string", "10.0.0.1:8000, 10.0.0.2", true, []string{"10.0.0.1:8000, 10.0.0.2"}},
		{"empty list", []any{}, true, nil},
		{"empty string", "", true, []string{""}},
		{"mixed list", []any{1, "a", nil, map[string]any{"b": "c"}}, true, []string{"a"}},
		{"number", 7, true, nil},
		{"null", nil, true, nil},
	} {
		b := encode(t, &pb.ProcessingRequest{MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb.subset_hint": structOf(t, map[string]any{"x-gateway-destination-endpoint-subset": c.value, "other": "10.9.9.9:1"}),
		}}})
		var m Message
		if err := m.Decode(b); err != nil {
			t.Fatal(err)
		}
		var got []string
		for item := range m.Hints {
			got = append(got, string(item))
		}
		if m.Narrowed() != c.narrow || !cmp.Equal(got, c.want) {
			t.Errorf("%s: narrowed %v, items %q, want %q", c.name, m.Narrowed(), got, c.want)
		}
		for range m.Hints {
			break // stopping early must be possible
		}
	}
	var m Message
	if err := m.Decode(encode(t, &pb.ProcessingRequest{MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb.subset_hint": structOf(t, map[string]any{"other": "x"})}}})); err != nil || m.Narrowed() {
		t.Errorf("without the key: narrowed %v, error %v", m.Narrowed(), err)
	}
}

func TestDecodeBody(t *testing.T) {
	b := encode(t, &pb.ProcessingRequest{ObservabilityMode: true, Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte("abc"), EndOfStream: true}}})
	var m Message
	if err := m.Decode(b); err != nil {
		t.Fatal(err)
	}
	if m.Kind != ResponseBody || !m.End || !m.Observe || string(m.Body) != "abc" || string(b[m.BodyAt:m.BodyAt+len(m.Body)]) != "abc" {
		t.Errorf("decoded %+v", m)
	}
}

func TestDecodeUnknown(t *testing.T) {
	for name, r := range map[string]*pb.ProcessingRequest{
		"empty":              {},
		"flow control":       {FlowControlInit: &pb.ProcessingRequest_FlowControlInit{InitialWindowDownstreamToSidestream: 7}},
		"mode of the future": {ProtocolConfig: &pb.ProtocolConfiguration{RequestBodyMode: 99, ResponseBodyMode: filter.ProcessingMode_GRPC}},
	} {
		var m Message
		if err := m.Decode(encode(t, r)); err != nil || m.Kind != Unknown || m.Request != None || m.Response != None {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	var m Message
	if err := m.Decode([]byte{0x12, 0xff}); err == nil {
		t.Error("broken bytes were taken")
	}
}

var kinds = map[Kind]func(*pb.ProcessingResponse) *pb.CommonResponse{
	RequestHeaders:  func(r *pb.ProcessingResponse) *pb.CommonResponse { return r.GetRequestHeaders().GetResponse() },
	RequestBody:     func(r *pb.ProcessingResponse) *pb.CommonResponse { return r.GetRequestBody().GetResponse() },
	ResponseHeaders: func(r *pb.ProcessingResponse) *pb.CommonResponse { return r.GetResponseHeaders().GetResponse() },
	ResponseBody:    func(r *pb.ProcessingResponse) *pb.CommonResponse { return r.GetResponseBody().GetResponse() },
}

func decodeReply(t interface{ Fatal(...any) }, b []byte) *pb.ProcessingResponse {
	var r pb.ProcessingResponse
	if err := proto.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.ProtoReflect().GetUnknown()) > 0 {
		t.Fatal("unknown fields in ", &r)
	}
	return &r
}

// TestReplies: the generated types read back what was meant, for sizes around every length boundary.
func TestReplies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(16_300, 16_500))
		text := func(label string) string { return strings.Repeat("v", size.Draw(t, label)) }
		var c Common
		want := &pb.CommonResponse{}
		for range rapid.IntRange(0, 3).Draw(t, "set") {
			c.Set = append(c.Set, Header{Name: text("name"), Value: text("value")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "remove") {
			c.Remove = append(c.Remove, text("removed"))
		}
		c.ClearRoute = rapid.Bool().Draw(t, "clear")
		if c.Replace = rapid.Bool().Draw(t, "replace"); c.Replace {
			c.Body = []byte(text("body"))
			want.BodyMutation = &pb.BodyMutation{Mutation: &pb.BodyMutation_Body{Body: c.Body}}
		}
		want.ClearRouteCache = c.ClearRoute
		if len(c.Set)+len(c.Remove) > 0 {
			want.HeaderMutation = &pb.HeaderMutation{RemoveHeaders: c.Remove}
		}
		for _, h := range c.Set {
			want.HeaderMutation.SetHeaders = append(want.HeaderMutation.SetHeaders, option(h))
		}
		kind := rapid.SampledFrom([]Kind{RequestHeaders, RequestBody, ResponseHeaders, ResponseBody}).Draw(t, "kind")
		destination := text("destination")
		got := decodeReply(t, AppendReply([]byte{}, kind, &c, destination))
		common := kinds[kind](got)
		if common == nil {
			common = &pb.CommonResponse{}
		}
		if !proto.Equal(want, common) {
			t.Fatal(cmp.Diff(want, common, protocmp.Transform()))
		}
		lb := got.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()
		if (destination != "") != (got.DynamicMetadata != nil) || lb["x-gateway-destination-endpoint"].GetStringValue() != destination {
			t.Fatalf("dynamic metadata %v", got.DynamicMetadata)
		}
	})
}

func option(h Header) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: h.Name, RawValue: []byte(h.Value)}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}
}

func TestEmptyReplies(t *testing.T) {
	for kind, of := range kinds {
		r := decodeReply(t, AppendReply(nil, kind, nil, ""))
		if r.Response == nil || of(r) != nil {
			t.Errorf("kind %d: %v", kind, r)
		}
	}
	if r := decodeReply(t, AppendTrailersReply(nil, RequestTrailers)); r.GetRequestTrailers() == nil {
		t.Error(r)
	}
	if r := decodeReply(t, AppendTrailersReply(nil, ResponseTrailers)); r.GetResponseTrailers() == nil {
		t.Error(r)
	}
}

func TestPieces(t *testing.T) {
	for _, n := range []int{0, 1, 100, 110, 117, 118, 119, 120, 121, 127, 128, 16_370, 16_384, 62_000, 2_097_140} {
		for _, end := range []bool{false, true} {
			prefix := AppendPiece(nil, RequestBody, n, end)
			if len(prefix) > MaxPrefix {
				t.Errorf("prefix of %d bytes", len(prefix))
			}
			body := strings.Repeat("b", n)
			s := decodeReply(t, append(prefix, body...)).GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
			if s == nil || string(s.Body) != body || s.EndOfStream != end {
				t.Errorf("piece of %d, %v: %d bytes, %v", n, end, len(s.GetBody()), s.GetEndOfStream())
			}
		}
	}
	if s := decodeReply(t, AppendPiece(nil, ResponseBody, 0, true)).GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse(); s == nil || !s.EndOfStream {
		t.Error("response piece")
	}
}

func TestImmediate(t *testing.T) {
	im := Immediate{Status: 429, Set: []Header{{"content-type", "application/json"}, {"retry-after", "1"}}, Body: []byte(strings.Repeat("{}", 100)), Details: "shed"}
	got := decodeReply(t, AppendImmediate(nil, &im)).GetImmediateResponse()
	if got.GetStatus().GetCode() != 429 || string(got.Body) != string(im.Body) || got.Details != "shed" ||
		!cmp.Equal(got.Headers.SetHeaders, []*core.HeaderValueOption{option(im.Set[0]), option(im.Set[1])}, protocmp.Transform()) {
		t.Errorf("got %v", got)
	}
}
