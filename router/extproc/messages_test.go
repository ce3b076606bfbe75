package extproc

import (
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

type modes struct {
	request, response filter.ProcessingMode_BodySendMode
}

func headerMap(kv ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return m
}

// open is the first message of a stream.
func open(m modes, end bool, kv ...string) message { return reqHeaders(end, kv...).configured(m) }

// configured makes a message the first of its stream.
func (m message) configured(by modes) message {
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	out.ProtocolConfig = &pb.ProtocolConfiguration{RequestBodyMode: by.request, ResponseBodyMode: by.response}
	return message{at: m.at, msg: out}
}

func reqHeaders(end bool, kv ...string) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestHeaders{RequestHeaders: &pb.HttpHeaders{Headers: headerMap(kv...), EndOfStream: end}}}}
}

// chat opens a stream with the headers of a chat request.
func chat(m modes, kv ...string) message {
	return open(m, false, append([]string{":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json"}, kv...)...)
}

func reqBody(b []byte, end bool) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestBody{RequestBody: &pb.HttpBody{Body: b, EndOfStream: end}}}}
}

func reqTrailers() message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_RequestTrailers{RequestTrailers: &pb.HttpTrailers{Trailers: headerMap("x-sum", "1")}}}}
}

func respHeaders(end bool, status string, kv ...string) message {
	kv = append([]string{":status", status}, kv...)
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headerMap(kv...), EndOfStream: end}}}}
}

func respBody(b string, end bool) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseBody{ResponseBody: &pb.HttpBody{Body: []byte(b), EndOfStream: end}}}}
}

func respTrailers(kv ...string) message {
	return message{msg: &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseTrailers{ResponseTrailers: &pb.HttpTrailers{Trailers: headerMap(kv...)}}}}
}

// with adds metadata of one namespace to a message.
func (m message) with(namespace, key string, value any) message {
	s, err := structpb.NewStruct(map[string]any{key: value})
	if err != nil {
		panic(err)
	}
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	if out.MetadataContext == nil {
		out.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
	}
	out.MetadataContext.FilterMetadata[namespace] = s
	return message{at: m.at, msg: out}
}

// subset adds a hint.
func (m message) subset(value any) message {
	return m.with("envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset", value)
}

// attribute adds an attribute of the filter.
func (m message) attribute(key, value string) message {
	out := proto.Clone(m.msg).(*pb.ProcessingRequest)
	s, _ := structpb.NewStruct(map[string]any{key: value})
	out.Attributes = map[string]*structpb.Struct{"envoy.filters.http.ext_proc": s}
	return message{at: m.at, msg: out}
}

// after moves a message to a time since the stream began.
func (m message) after(d time.Duration) message { return message{at: d, msg: m.msg} }

// chatBody is a small chat request.
var chatBody = []byte(`{"model":"demo","messages":[{"role":"user","content":"hello"}]}`)

// ok are the messages of a short good answer.
func ok() []message {
	return []message{
		respHeaders(false, "200", "content-type", "application/json"),
		respBody(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`, false),
		respBody("", true),
	}
}

// request is a whole chat request in full duplex.
func wholeChat(kv ...string) []message {
	return []message{chat(fds, kv...), reqBody(chatBody, false), reqBody(nil, true)}
}

func join(parts ...[]message) (out []message) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// unknown is a message that only later gateways send.
func unknown() message {
	return message{msg: &pb.ProcessingRequest{FlowControlInit: &pb.ProcessingRequest_FlowControlInit{InitialWindowDownstreamToSidestream: 1}}}
}

// reqAsResponse is a message of response headers without a status.
func reqAsResponse() *pb.ProcessingRequest {
	return &pb.ProcessingRequest{Request: &pb.ProcessingRequest_ResponseHeaders{ResponseHeaders: &pb.HttpHeaders{Headers: headerMap("content-type", "text/plain")}}}
}
