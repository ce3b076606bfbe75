package request

import (
	"fmt"
	"net/http"
	"strconv"
)

// Error is a refusal of a request, as its client is to see it.
type Error struct {
	Status  int    // HTTP status
	Type    string // as invalid_request_error; empty: chosen by the status
	Param   string // the field of the body, or the header, at fault; empty: none
	Code    string // machine-readable, as missing_model
	Message string // what is wrong, why, and what to do; Param, where there is one, goes before it
}

// Error returns the message with what it is about. It never holds text of the request.
func (e *Error) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

// AppendBody appends the JSON body of the refusal in the shape that clients of the API expect:
// OpenAI's error object, inside Anthropic's envelope for Messages.
func (e *Error) AppendBody(dst []byte, api API) []byte {
	dst = append(dst, '{')
	if api == Messages {
		dst = append(dst, `"type":"error",`...)
	}
	dst = append(dst, `"error":{"message":`...)
	dst = appendQuoted(dst, e.Error())
	dst = append(dst, `,"type":`...)
	dst = appendQuoted(dst, e.kind(api))
	dst = append(dst, `,"param":`...)
	dst = appendOptional(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendOptional(dst, e.Code)
	return append(dst, "}}"...)
}

func appendOptional(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, s)
}

// kind is the type of the error, as the API's own servers call it.
func (e *Error) kind(api API) string {
	switch {
	case e.Type != "":
		return e.Type
	case e.Status == http.StatusNotFound:
		return "not_found_error"
	case e.Status == http.StatusRequestEntityTooLarge && api == Messages:
		return "request_too_large"
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.Status == http.StatusServiceUnavailable && api == Messages:
		return "overloaded_error"
	case e.Status == http.StatusServiceUnavailable:
		return "service_unavailable_error"
	case e.Status >= 500 && api == Messages:
		return "api_error"
	case e.Status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// refuse returns a refusal of a field with status 400.
func refuse(param, code, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Param: param, Code: code, Message: message}
}

// wrongKind refuses a value for what it is.
func wrongKind(param string, first byte, want string) *Error {
	return refuse(param, "invalid_type", kind(first)+" is not accepted here; send "+want)
}

// below puts the path of an error below a member.
func (e *Error) below(name string) *Error {
	if e.Param != "" && e.Param[0] != '[' {
		name += "."
	}
	e.Param = name + e.Param
	return e
}

// at puts the path of an error below an element.
func (e *Error) at(i int) *Error {
	return e.below("[" + strconv.Itoa(i) + "]")
}

// broken refuses a body that is no JSON.
func broken(f fault, at, length int) *Error {
	switch f {
	case cutOff:
		return refuse("", "invalid_json", fmt.Sprintf("body: breaks off after %d bytes inside the JSON; send all of it", length))
	case badUTF8:
		return refuse("", "invalid_utf8", fmt.Sprintf("body: byte %d is no UTF-8; encode JSON as UTF-8", at))
	case tooDeep:
		return refuse("", "too_deep", fmt.Sprintf("body: byte %d opens level %d; nest no deeper than %d", at, maxDepth+1, maxDepth))
	case noFault, badSyntax:
	}
	return refuse("", "invalid_json", fmt.Sprintf("body: byte %d is no JSON; see RFC 8259", at))
}
