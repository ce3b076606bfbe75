package emulator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// body holds what the emulator reads of a request; every other field is accepted and ignored, as
// by the engine.
type body struct {
	Model         string         `json:"model"`
	Messages      []message      `json:"messages"`
	Prompt        jsontext.Value `json:"prompt"`
	Tools         jsontext.Value `json:"tools"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	MaxTokens     *int           `json:"max_tokens"`
	MaxCompletion *int           `json:"max_completion_tokens"`
	MinTokens     int            `json:"min_tokens"`
	N             *int           `json:"n"`
	Seed          *int64         `json:"seed"`
	Priority      int32          `json:"priority"`
	CacheSalt     string         `json:"cache_salt"`
	Extra         map[string]any `json:"vllm_xargs"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
	Continuous   bool `json:"continuous_usage_stats"`
}

type message struct {
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	ToolCalls jsontext.Value `json:"tool_calls"`
}

// problem is an error that the client is told, in the engine's words.
type problem struct {
	status  int
	kind    string // NotFoundError, BadRequestError, …
	param   string
	message string
}

func (p *problem) Error() string { return p.message }

func badRequest(param, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, kind: "BadRequestError", param: param, message: fmt.Sprintf(format, args...)}
}

// outputTokens is the field of vllm_xargs that sets the length of the answer below the cap, as an
// end-of-sequence token would.
const outputTokens = "output_tokens"

const maxChoices = 128 // answers of one request, all prompts together

// unit is one answer to generate.
type unit struct {
	prompt int // index of its prompt
	tokens []uint32
	output int  // length of the answer
	cut    bool // it ends by the cap
	seed   uint64
}

// all is the prompt followed by the answer, as the cache will hold them.
func (u *unit) all() []uint32 {
	out := make([]uint32, len(u.tokens), len(u.tokens)+u.output)
	copy(out, u.tokens)
	for i := range u.output {
		w := word(u.seed, i)
		out = append(out, binary.LittleEndian.Uint32(w[:]))
	}
	return out
}

// ask is a checked request.
type ask struct {
	body
	chat    bool
	root    uint64 // of the block hashes: what else than tokens makes caches differ
	adapter int32
	cap     int // max_tokens given, or the model's
	choices int
	prompts int
	units   []unit
}

// parse reads and checks a body. Errors are *problem.
func (e *Emulator) parse(data []byte, chat bool) (*ask, error) {
	a := &ask{chat: chat, choices: 1}
	err := json.Unmarshal(data, &a.body, jsontext.AllowDuplicateNames(true))
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		where := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
		return nil, badRequest(where, "1 validation error:\n  {'loc': ('body', '%s'), 'msg': 'Input should be a valid %v'}", where, semantic.GoType)
	case err != nil:
		return nil, badRequest("", "1 validation error:\n  {'type': 'json_invalid', 'msg': 'JSON decode error: %v'}", err)
	}
	adapter, ok := e.adapter(a.Model)
	if !ok {
		return nil, &problem{http.StatusNotFound, "NotFoundError", "model", fmt.Sprintf("The model `%s` does not exist.", a.Model)}
	}
	a.adapter = adapter
	a.root = digest(appendText(appendText([]uint32{uint32(adapter)}, a.CacheSalt), e.cfg.Model))
	if a.N != nil {
		a.choices = *a.N
	}
	prompts, err := a.promptTokens()
	if err != nil {
		return nil, err
	}
	a.prompts = len(prompts)
	if a.choices < 1 || a.choices > maxChoices || a.choices*len(prompts) > maxChoices {
		return nil, badRequest("n", "n must be between 1 and %d, got %d for %d prompts.", maxChoices, a.choices, len(prompts))
	}
	return a, a.plan(prompts, e.cfg.MaxLen)
}

// plan settles the length of each answer.
func (a *ask) plan(prompts [][]uint32, maxLen int) error {
	limit := a.MaxTokens
	if a.MaxCompletion != nil && a.chat {
		limit = a.MaxCompletion
	}
	if limit == nil && !a.chat {
		limit = new(16) // the engine's default for completions
	}
	if limit != nil && *limit < 1 {
		return badRequest("max_tokens", "max_tokens must be at least 1, got %d.", *limit)
	}
	wanted, err := a.wanted()
	if err != nil {
		return err
	}
	for p, tokens := range prompts {
		room := maxLen - len(tokens)
		switch {
		case len(tokens) == 0:
			return badRequest("prompt", "The decoder prompt cannot be empty")
		case room < 1:
			return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", maxLen, len(tokens))
		case limit != nil && *limit > room:
			return badRequest("max_tokens", "This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains %d input tokens. Please reduce the length of the input prompt or the number of requested output tokens.", maxLen, *limit, len(tokens))
		}
		a.cap = room
		if limit != nil {
			a.cap = *limit
		}
		if a.MinTokens < 0 || a.MinTokens > a.cap {
			return badRequest("min_tokens", "min_tokens must be between 0 and max_tokens=%d, got %d.", a.cap, a.MinTokens)
		}
		seed := digest(tokens)
		if a.Seed != nil {
			seed = mix(seed ^ uint64(*a.Seed))
		}
		for c := range a.choices {
			u := unit{prompt: p, tokens: tokens, output: a.cap, cut: true, seed: mix(seed + uint64(c))}
			switch {
			case wanted > 0:
				u.output, u.cut = min(max(wanted, a.MinTokens), a.cap), wanted > a.cap
			case limit == nil:
				u.output, u.cut = min(max(drawn(u.seed), a.MinTokens), a.cap), false
			}
			a.units = append(a.units, u)
		}
	}
	return nil
}

// drawn is the length of an answer that nothing limits: log-uniform between 16 and 512.
func drawn(seed uint64) int {
	return int(math.Exp2(4 + 5*float64(mix(seed)>>11)/(1<<53)))
}

func (a *ask) wanted() (int, error) {
	v, ok := a.Extra[outputTokens]
	if !ok {
		return 0, nil
	}
	n, ok := v.(float64)
	if !ok || n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
		return 0, badRequest("vllm_xargs", "vllm_xargs.%s must be a positive integer, got %v.", outputTokens, v)
	}
	return int(n), nil
}

func (a *ask) promptTokens() ([][]uint32, error) {
	if !a.chat {
		return completionPrompts(a.Prompt)
	}
	if len(a.Messages) == 0 {
		return nil, badRequest("messages", "1 validation error:\n  {'loc': ('body', 'messages'), 'msg': 'Field required'}")
	}
	var t []uint32
	if present(a.Tools) {
		t = append(appendText(appendRole(t, "tools"), string(a.Tools)), markEnd)
	}
	for i, m := range a.Messages {
		if m.Role == "" {
			return nil, badRequest("messages", "messages[%d]: role is required", i)
		}
		t = appendRole(t, m.Role)
		var err error
		if t, err = appendContent(t, m.Content); err != nil {
			return nil, badRequest("messages", "messages[%d]: %v", i, err)
		}
		if present(m.ToolCalls) {
			t = appendText(t, string(m.ToolCalls))
		}
		t = append(t, markEnd)
	}
	return [][]uint32{appendRole(t, "assistant")}, nil
}

func present(v jsontext.Value) bool { return len(v) > 0 && !bytes.Equal(v, []byte("null")) }

// appendContent adds the tokens of a message's content: a text or a list of parts.
func appendContent(t []uint32, v jsontext.Value) ([]uint32, error) {
	switch {
	case !present(v):
		return t, nil
	case v.Kind() == '"':
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return nil, err
		}
		return appendText(t, s), nil
	case v.Kind() != '[':
		return nil, errors.New("content should be a string or a list of parts")
	}
	var parts []jsontext.Value
	if err := json.Unmarshal(v, &parts); err != nil {
		return nil, err
	}
	for i, raw := range parts {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(raw, &part, jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, fmt.Errorf("part %d: not an object with a type", i)
		}
		switch part.Type {
		case "text", "input_text", "refusal", "thinking":
			t = appendText(t, part.Text)
		case "":
			return nil, fmt.Errorf("part %d: type is required", i)
		default:
			t = appendMedia(t, raw)
		}
	}
	return t, nil
}

// completionPrompts reads the four shapes of a prompt: text, ids, lists of either.
func completionPrompts(v jsontext.Value) ([][]uint32, error) {
	if !present(v) {
		return nil, badRequest("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
	}
	var text string
	if v.Kind() == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return nil, badRequest("prompt", "prompt: %v", err)
		}
		return [][]uint32{appendText(nil, text)}, nil
	}
	var ids []uint32
	if json.Unmarshal(v, &ids) == nil {
		if len(ids) == 0 {
			return nil, badRequest("prompt", "The decoder prompt cannot be empty")
		}
		return [][]uint32{ids}, nil
	}
	var texts []string
	if json.Unmarshal(v, &texts) == nil {
		out := make([][]uint32, len(texts))
		for i, s := range texts {
			out[i] = appendText(nil, s)
		}
		return out, nil
	}
	var lists [][]uint32
	if json.Unmarshal(v, &lists) == nil {
		return lists, nil
	}
	return nil, badRequest("prompt", "prompt should be a string, a list of strings, a list of token ids or a list of such lists")
}
