package request

// answer is how far the chain of a prompt was continued by its answer.
type answer struct {
	begun     bool
	ended     bool // later text is none of this chain's
	continues bool // the answer continues the last message
}

// AddAnswer continues the chain of the prompt by generated text, as the next turn of the
// conversation will present it: a chat-like answer as an assistant's message, a completion as more
// of the same prompt. Only text of the first choice belongs here, in order and decoded. Where the
// next turn cannot be foreseen (token ids, several prompts, embeddings, opaque requests) nothing is
// continued.
func (r *Request) AddAnswer(text []byte) {
	if r.continues() && len(text) > 0 {
		r.work.begin(r.API)
		_, _ = r.work.hash.Write(text)
	}
}

// AddQuoted is [Request.AddAnswer] for text that still is a JSON string, quotes and escapes
// included. What is no string ends the answer.
func (r *Request) AddQuoted(raw []byte) {
	if !r.continues() {
		return
	}
	if len(raw) < 2 || raw[0] != '"' {
		r.EndAnswer()
		return
	}
	if end, f := checkString(raw, 0); f != noFault || end != len(raw) {
		r.EndAnswer()
		return
	}
	if len(raw) > 2 {
		r.work.begin(r.API)
		r.work.text(&r.work.hash, raw, 0)
	}
}

// EndAnswer tells that what is generated from here on will not come back as text of this message:
// reasoning, a tool call, another choice. Later text is ignored.
func (r *Request) EndAnswer() {
	if r.work != nil {
		r.work.answer.ended = true
	}
}

// Chain returns the blocks of the prompt continued by those of the answer so far. It is valid until
// Reset; [Request.Blocks] stays the chain of the prompt alone.
func (r *Request) Chain() []uint64 {
	if r.work == nil || r.BlockSize == 0 {
		return r.Blocks
	}
	return r.work.hash.Chain()
}

func (r *Request) continues() bool {
	return r.work != nil && r.BlockSize > 0 && !r.work.answer.ended
}

// begin puts the boundary before an answer's first text.
func (k *work) begin(api API) {
	if !k.answer.begun && !k.answer.continues && api != Completions {
		k.hash.Mark(markMessage, roleAssistant)
	}
	k.answer.begun = true
}
