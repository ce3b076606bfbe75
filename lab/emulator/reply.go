package emulator

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// reply writes the answer to one request, in vLLM's very bytes.
type reply struct {
	a       *ask
	streams []*stream
	sent    []int // tokens written, by stream
	id      string
	model   []byte // quoted
	created string
	buf     []byte
}

const (
	fingerprint = "vllm-" + version + "-emulated"
	maxID       = 128
)

func newReply(e *Emulator, a *ask, requestID string, streams []*stream) *reply {
	if requestID == "" || len(requestID) > maxID || strings.ContainsAny(requestID, "\"\\") {
		requestID = strings.ToLower(rand.Text())[:16]
	}
	r := &reply{a: a, streams: streams, sent: make([]int, len(streams)), created: strconv.FormatInt(time.Now().Unix(), 10)}
	r.id = "cmpl-" + requestID
	if a.chat {
		r.id = "chatcmpl-" + requestID
	}
	name := a.Model
	if name == "" {
		name = e.cfg.Model
	}
	r.model, _ = jsontext.AppendQuote(nil, name) // valid UTF-8: it came from JSON
	return r
}

var errDied = errors.New("the engine died")

// stream writes server-sent events as the tokens become visible, all there are at once.
func (r *reply) stream(w http.ResponseWriter, req *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		return err
	}
	for open := len(r.streams); open > 0; {
		select {
		case <-r.streams[0].notify:
		case <-req.Context().Done():
			return req.Context().Err()
		}
		r.buf = r.buf[:0]
		open = 0
		for i := range r.streams {
			done, failed := r.events(i)
			if failed {
				return errDied
			}
			if !done {
				open++
			}
		}
		if open == 0 {
			r.last()
		}
		if len(r.buf) == 0 {
			continue
		}
		if _, err := w.Write(r.buf); err != nil {
			return err
		}
		if err := control.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// events appends the new tokens of a stream.
func (r *reply) events(i int) (done, failed bool) {
	s := r.streams[i]
	n, done, failed := s.progress()
	if failed {
		return false, true
	}
	if n > 0 && r.sent[i] == 0 && r.a.chat {
		r.head("chat.completion.chunk")
		r.add(`[{"index":`, strconv.Itoa(i), `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null`)
		r.runningUsage(s, 0)
		r.add("}\n\n")
	}
	for ; r.sent[i] < n; r.sent[i]++ {
		text := word(s.unit.seed, r.sent[i])
		reason := "null"
		if r.sent[i] == s.unit.output-1 {
			reason = s.finish()
		}
		if r.a.chat {
			r.head("chat.completion.chunk")
			r.add(`[{"index":`, strconv.Itoa(i), `,"delta":{"content":"`, string(text[:]), `"},"logprobs":null,"finish_reason":`, reason)
			if reason != "null" {
				r.add(`,"stop_reason":null`)
			}
		} else {
			r.head("text_completion")
			r.add(`[{"index":`, strconv.Itoa(i), `,"text":"`, string(text[:]), `","logprobs":null,"finish_reason":`, reason, `,"stop_reason":null,"prompt_token_ids":null`)
		}
		r.add(`,"token_ids":null}]`)
		r.runningUsage(s, r.sent[i]+1)
		if reason != "null" && !r.usage() {
			r.add(`,"system_fingerprint":"`, fingerprint, `"`)
		}
		r.add("}\n\n")
	}
	return done, false
}

// finish is why the answer ended, quoted.
func (s *stream) finish() string {
	if s.unit.cut {
		return `"length"`
	}
	return `"stop"`
}

func (r *reply) usage() bool { return r.a.StreamOptions != nil && r.a.StreamOptions.IncludeUsage }

// head begins an event: everything up to the choices.
func (r *reply) head(object string) {
	r.add(`data: {"id":"`, r.id, `","object":"`, object, `","created":`, r.created, `,"model":`)
	r.buf = append(r.buf, r.model...)
	r.add(`,"choices":`)
}

func (r *reply) add(parts ...string) {
	for _, p := range parts {
		r.buf = append(r.buf, p...)
	}
}

// runningUsage is what continuous_usage_stats adds to each event.
func (r *reply) runningUsage(s *stream, n int) {
	if r.usage() && r.a.StreamOptions.Continuous {
		r.count(len(s.unit.tokens), n)
		r.add("}")
	}
}

// count appends usage without the closing brace.
func (r *reply) count(prompt, output int) {
	r.add(`,"usage":{"prompt_tokens":`, strconv.Itoa(prompt), `,"total_tokens":`, strconv.Itoa(prompt+output), `,"completion_tokens":`, strconv.Itoa(output))
}

// totals are the tokens of the whole request. As in vLLM a prompt counts once, whatever n is, and
// cached tokens are those of the first answer.
func (r *reply) totals() (prompt, output, cached int) {
	last := -1
	for _, s := range r.streams {
		if s.unit.prompt != last {
			prompt += len(s.unit.tokens)
			last = s.unit.prompt
		}
		output += s.unit.output
	}
	return prompt, output, int(r.streams[0].cached.Load())
}

// total appends the usage of the whole request.
func (r *reply) total() {
	prompt, output, cached := r.totals()
	r.count(prompt, output)
	r.add(`,"prompt_tokens_details":{"cached_tokens":`, strconv.Itoa(cached), `}}`)
}

// last appends the usage event, if asked for, and the end marker.
func (r *reply) last() {
	if r.usage() {
		object := "text_completion"
		if r.a.chat {
			object = "chat.completion.chunk"
		}
		r.head(object)
		r.add("[]")
		r.total()
		r.add(`,"system_fingerprint":"`, fingerprint, "\"}\n\n")
	}
	r.add("data: [DONE]\n\n")
}

// whole writes one JSON document when all tokens are there.
func (r *reply) whole(w http.ResponseWriter, req *http.Request) error {
	for open := true; open; {
		select {
		case <-r.streams[0].notify:
		case <-req.Context().Done():
			return req.Context().Err()
		}
		open = false
		for _, s := range r.streams {
			_, done, failed := s.progress()
			if failed {
				return errDied
			}
			open = open || !done
		}
	}
	object := "text_completion"
	if r.a.chat {
		object = "chat.completion"
	}
	r.add(`{"id":"`, r.id, `","object":"`, object, `","created":`, r.created, `,"model":`)
	r.buf = append(r.buf, r.model...)
	r.add(`,"choices":[`)
	for i, s := range r.streams {
		if i > 0 {
			r.add(",")
		}
		r.choice(i, s)
	}
	r.add(`],"service_tier":null,"system_fingerprint":"`, fingerprint, `"`)
	r.total()
	if r.a.chat {
		r.add(`,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null`)
	}
	r.add(`,"kv_transfer_params":null}`)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(r.buf)))
	_, err := w.Write(r.buf)
	return err
}

func (r *reply) choice(i int, s *stream) {
	r.add(`{"index":`, strconv.Itoa(i))
	if r.a.chat {
		r.add(`,"message":{"role":"assistant","content":"`)
	} else {
		r.add(`,"text":"`)
	}
	for k := range s.unit.output {
		text := word(s.unit.seed, k)
		r.buf = append(r.buf, text[:]...)
	}
	if r.a.chat {
		r.add(`","refusal":null,"annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning":null}`)
	} else {
		r.add(`"`)
	}
	r.add(`,"logprobs":null,"finish_reason":`, s.finish(), `,"stop_reason":null,"token_ids":null`)
	if !r.a.chat {
		r.add(`,"prompt_logprobs":null,"prompt_token_ids":null`)
	}
	r.add("}")
}
