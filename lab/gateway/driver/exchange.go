package driver

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxChunk is how Envoy cuts bodies: at the size of its connection buffer.
const maxChunk = 1 << 20

// Exchange is the messages of one exchange, FULL_DUPLEX_STREAMED both ways: request headers, the body in
// chunks of up to 1 MiB, an empty end; response headers, the answer in one chunk, an empty end. It can
// be sent many times, by one goroutine at a time.
type Exchange struct {
	request []*extproc.ProcessingRequest
	headers *extproc.ProcessingRequest // of the response
	answer  []*extproc.ProcessingRequest
}

// NewExchange makes the messages of a chat completion with the given body and JSON answer. The body
// is referenced, not copied: changing it changes what is sent.
func NewExchange(body, answer []byte) *Exchange {
	const duplex = extfilter.ProcessingMode_FULL_DUPLEX_STREAMED
	x := &Exchange{}
	x.request = append(x.request, &extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{Headers: headers(
			":method", "POST", ":path", "/v1/chat/completions", ":authority", "llm.example.test", ":scheme", "https",
			"content-type", "application/json", "content-length", strconv.Itoa(len(body)), "user-agent", "openai-python/1.50",
			"accept", "application/json", "accept-encoding", "gzip, deflate", "authorization", "Bearer sk-0123456789abcdef",
			"x-request-id", "0c3ae1d9-6b1e-4f1a-9d4c-2f6f0d3a8b11", "x-forwarded-proto", "https", "x-forwarded-for", "10.0.0.99",
		)}},
		ProtocolConfig: &extproc.ProtocolConfiguration{RequestBodyMode: duplex, ResponseBodyMode: duplex},
	})
	for rest := body; len(rest) > 0; {
		n := min(len(rest), maxChunk)
		x.request = append(x.request, requestBody(rest[:n], false))
		rest = rest[n:]
	}
	x.request = append(x.request, requestBody(nil, true))
	x.headers = &extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{Headers: headers(
			":status", "200", "content-type", "application/json", "server", "uvicorn", "date", "Thu, 01 Jan 2026 00:00:00 GMT",
		)}},
	}
	x.answer = []*extproc.ProcessingRequest{responseBody(answer, false), responseBody(nil, true)}
	return x
}

// response is the endpoint's side, with the served endpoint in the metadata as override_host puts it there.
func (x *Exchange) response(endpoint string) []*extproc.ProcessingRequest {
	h := &extproc.ProcessingRequest{
		Request:         x.headers.Request,
		MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb": object("x-gateway-destination-endpoint-served", endpoint)}},
		Attributes:      map[string]*structpb.Struct{"envoy.filters.http.ext_proc": object("upstream.address", endpoint)},
	}
	return append([]*extproc.ProcessingRequest{h}, x.answer...)
}

func object(key, value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(value)}}
}

func headers(pairs ...string) *corev3.HeaderMap {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

func requestBody(p []byte, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: p, EndOfStream: end}}}
}

func responseBody(p []byte, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: &extproc.HttpBody{Body: p, EndOfStream: end}}}
}
