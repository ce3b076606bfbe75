package request

// AddAnswer continues the chain of the prompt by generated text, as the next turn of the
// conversation will present it: a chat-like answer as an assistant's message, a completion as more
// of the same prompt. Only text of the first choice belongs here, in order and decoded.
func (r *Request) AddAnswer(text []byte) {}

// AddQuoted is [Request.AddAnswer] for text that still is a JSON string, quotes and escapes
// included. A string that is no JSON ends the answer.
func (r *Request) AddQuoted(raw []byte) {}

// EndAnswer tells that what is generated from here on will not come back as text of this message:
// reasoning, a tool call, another choice. Later text is ignored.
func (r *Request) EndAnswer() {}

// Chain returns the blocks of the prompt continued by those of the answer so far. It is valid until
// Reset; [Request.Blocks] stays the chain of the prompt alone.
func (r *Request) Chain() []uint64 { return nil }
