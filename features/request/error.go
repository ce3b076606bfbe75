package request

// Error is a refusal of a request, as its client is to see it.
type Error struct {
	Status  int    // HTTP status
	Type    string // as invalid_request_error; empty: chosen by the status
	Param   string // the field of the body, or the header, at fault; empty: none
	Code    string // machine-readable, as missing_model
	Message string // where: what: why; what to do
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// AppendBody appends the JSON body of the refusal in the shape that clients of the API expect:
// OpenAI's error object, with Anthropic's outer type for Messages.
func (e *Error) AppendBody(dst []byte, api API) []byte { return dst }
