package request

import "time"

// API says which API a request speaks; it decides what of the body is read.
type API uint8

// The APIs whose bodies are read. Everything else is [Opaque]: routed, never parsed.
const (
	Opaque      API = iota
	Chat            // POST …/v1/chat/completions
	Completions     // POST …/v1/completions
	Responses       // POST …/v1/responses
	Embeddings      // POST …/v1/embeddings
	Messages        // POST …/v1/messages (Anthropic)
	Audio           // POST …/v1/audio/… as multipart/form-data: model and stream only
)

// String returns the API's name in logs and traces.
func (a API) String() string {
	switch a {
	case Opaque:
		return "opaque"
	case Chat:
		return "chat"
	case Completions:
		return "completions"
	case Responses:
		return "responses"
	case Embeddings:
		return "embeddings"
	case Messages:
		return "messages"
	case Audio:
		return "audio"
	}
	return "unknown"
}

// SLO is the service level a request carries, each zero where it carries none. Values are finite
// and within [1 ms, 1 h]: they are clamped when read.
type SLO struct {
	TTFT time.Duration // until the first token
	ITL  time.Duration // mean gap between tokens after the first
	E2E  time.Duration // until the end
}

// Request is what the router knows about a request before it is answered. It never holds prompt
// text beyond the life of the body it was parsed from.
type Request struct {
	API     API
	Path    string // without the query
	Model   string // as the client named it; empty on opaque requests
	Rewrite string // the name the engine is asked for in place of Model; empty: Model itself. See [Request.Target]
	Adapter string // LoRA adapter, when the model name is one
	Stream  bool   // the client asked for server-sent events

	MaxTokens int // cap on output tokens; 0: none given
	Choices   int // parallel answers (n), at least 1

	PromptBytes  int  // bytes of decoded prompt text; 4 per id for prompts of token ids
	PromptTokens int  // exact for token ids, else estimated from PromptBytes
	ExactTokens  bool // PromptTokens was counted, not estimated
	MediaUnits   int  // images, audio clips and the like among the content parts

	// Blocks is the chain of prefix-block hashes, root first; block i covers decoded bytes
	// (or ids) [i*size, (i+1)*size). Only full blocks count. See package prefix.
	Blocks    []uint64
	BlockSize int // bytes of decoded text (or 4 x ids) per block

	Session  string // from header or body; empty: none
	Priority int    // from the objective header and the configuration
	Tenant   string // fairness id; empty: none
	ID       string // x-request-id, sanitised; unique only by the client's grace, never a key
	SLO      SLO
	Ignored  int // SLO headers left out because they were no positive finite number

	work *work // memory of parsing and hashing, kept by Reset
}

// Reset makes the request empty, keeping its memory.
func (r *Request) Reset() {
	*r = Request{Blocks: r.Blocks[:0], work: r.work}
	if r.work != nil {
		r.work.reset()
	}
}

// Target is the model name the engine is asked for: Model, or what it is rewritten to. Endpoints
// serve it, and prefix blocks belong to it.
func (r *Request) Target() string {
	if r.Rewrite != "" {
		return r.Rewrite
	}
	return r.Model
}

// BlockTokens is the number of model tokens that one prefix block stands for.
func (r *Request) BlockTokens() float64 {
	if r.PromptBytes <= 0 {
		return 0
	}
	return float64(r.PromptTokens) * float64(r.BlockSize) / float64(r.PromptBytes)
}

// CachedTokens converts a number of matching blocks to prompt tokens: at most PromptTokens-1, as an
// engine always computes the last token itself.
func (r *Request) CachedTokens(blocks int) int {
	return max(0, min(int(float64(blocks)*r.BlockTokens()), r.PromptTokens-1))
}
