package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// errMalformed tells that bytes are no protobuf message.
var errMalformed = errors.New("malformed protobuf message")

// tag is a field number with its wire type, as it stands before every field.
type tag = uint64

const (
	varint    tag = 0 // a number, a boolean or an enum
	delimited tag = 2 // bytes, a string, a message or an entry of a map
)

// Tags of the messages that we read or write.
const (
	reqHeaders      = 2<<3 | delimited // ProcessingRequest
	reqRespHeaders  = 3<<3 | delimited
	reqBody         = 4<<3 | delimited
	reqRespBody     = 5<<3 | delimited
	reqTrailers     = 6<<3 | delimited
	reqRespTrailers = 7<<3 | delimited
	reqMetadata     = 8<<3 | delimited
	reqAttributes   = 9<<3 | delimited
	reqObserve      = 10<<3 | varint
	reqConfig       = 11<<3 | delimited

	configRequestMode  = 1<<3 | varint // ProtocolConfiguration
	configResponseMode = 2<<3 | varint

	httpHeaders    = 1<<3 | delimited // HttpHeaders, HttpTrailers
	httpHeadersEnd = 3<<3 | varint
	httpBody       = 1<<3 | delimited // HttpBody
	httpBodyEnd    = 2<<3 | varint

	mapHeaders     = 1<<3 | delimited // HeaderMap
	headerKey      = 1<<3 | delimited // HeaderValue
	headerValue    = 2<<3 | delimited
	headerRawValue = 3<<3 | delimited

	metadataFilter = 1<<3 | delimited // Metadata
	entryKey       = 1<<3 | delimited // an entry of any map
	entryValue     = 2<<3 | delimited
	structFields   = 1<<3 | delimited // Struct
	valueString    = 3<<3 | delimited // Value
	valueStruct    = 5<<3 | delimited
	valueList      = 6<<3 | delimited
	listValues     = 1<<3 | delimited // ListValue

	respImmediate = 7<<3 | delimited // ProcessingResponse
	respMetadata  = 8<<3 | delimited

	replyCommon      = 1<<3 | delimited // HeadersResponse, BodyResponse
	commonHeaders    = 2<<3 | delimited // CommonResponse
	commonBody       = 3<<3 | delimited
	commonClearRoute = 5<<3 | varint
	mutationSet      = 1<<3 | delimited // HeaderMutation
	mutationRemove   = 2<<3 | delimited
	optionHeader     = 1<<3 | delimited // HeaderValueOption
	optionAction     = 3<<3 | varint
	bodyWhole        = 1<<3 | delimited // BodyMutation
	bodyStreamed     = 3<<3 | delimited
	streamedBody     = 1<<3 | delimited // StreamedBodyResponse
	streamedEnd      = 2<<3 | varint

	immediateStatus  = 1<<3 | delimited // ImmediateResponse
	immediateHeaders = 2<<3 | delimited
	immediateBody    = 3<<3 | delimited
	immediateDetails = 5<<3 | delimited
	statusCode       = 1<<3 | varint // HttpStatus
)

// overwrite is HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD: the gateway's default would append to
// what the client sent.
const overwrite = 2

// fields walks the fields of one encoded message. Fields of other wire types are skipped.
type fields struct {
	rest []byte
	tag  tag
	data []byte // of a delimited field
	n    uint64 // of a varint field
	bad  bool   // the bytes are no message
}

// next moves to the next field and reports whether there is one.
func (f *fields) next() bool {
	for len(f.rest) > 0 {
		num, typ, n := protowire.ConsumeTag(f.rest)
		if n < 0 {
			return f.fail()
		}
		f.rest = f.rest[n:]
		f.tag = protowire.EncodeTag(num, typ)
		switch typ {
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(f.rest)
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(f.rest)
		default:
			n = protowire.ConsumeFieldValue(num, typ, f.rest)
		}
		if n < 0 {
			return f.fail()
		}
		f.rest = f.rest[n:]
		if typ == protowire.BytesType || typ == protowire.VarintType {
			return true
		}
	}
	return false
}

func (f *fields) fail() bool {
	f.bad, f.rest = true, nil
	return false
}

// entry reads a field of a map: its key and its value.
func entry(b []byte) (key, value []byte, ok bool) {
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case entryKey:
			key = f.data
		case entryValue:
			value = f.data
		}
	}
	return key, value, !f.bad
}
