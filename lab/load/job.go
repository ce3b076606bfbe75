package load

import (
	"strconv"
	"time"
)

// Job is one request of a workload.
type Job struct {
	At     time.Duration // when it is due, on the engines' clock
	Chat   bool          // the first part is the system message, the others the user's; else a completion
	Parts  []Part
	Output int // tokens of the answer
}

// Workload is a list of requests and what counts as serving them well.
type Workload struct {
	About    string        // as shown to the operator
	Jobs     []Job         // by time
	Duration time.Duration // from the start to the last arrival, at most
	SLO      SLO
}

// SLO is what counts as served well.
type SLO struct{ TTFT, ITL time.Duration }

// Kind says what engines are behind the gateway: how they are told the length of an answer, and what
// text they count as many tokens as a job has.
type Kind uint8

// Kinds of engines.
const (
	Emulated Kind = iota // package emulator: the length in a field of its own, since the cap on it tells a router little, as in life
	Real                 // vLLM, SGLang: the cap is the length, and the end-of-text token is ignored
)

// body is the request as a client sends it.
func (j *Job) body(model string, kind Kind) []byte {
	size := 256
	for _, p := range j.Parts {
		size += 6 * p.Tokens
	}
	b := make([]byte, 0, size)
	b = append(b, `{"model":"`...)
	b = append(b, model...)
	b = append(b, `","stream":true,"stream_options":{"include_usage":true},"max_tokens":`...)
	text := Part.letters
	if kind == Real {
		b = strconv.AppendInt(b, int64(j.Output), 10)
		b = append(b, `,"ignore_eos":true,`...)
		text = Part.words
	} else {
		b = strconv.AppendInt(b, int64(maxTokens(j.Output)), 10)
		b = append(b, `,"vllm_xargs":{"output_tokens":`...)
		b = strconv.AppendInt(b, int64(j.Output), 10)
		b = append(b, `},`...)
	}
	rest := j.Parts
	if j.Chat {
		b = append(b, `"messages":[{"role":"system","content":"`...)
		b = text(rest[0], b)
		b = append(b, `"},{"role":"user","content":"`...)
		rest = rest[1:]
	} else {
		b = append(b, `"prompt":"`...)
	}
	for _, p := range rest {
		b = text(p, b)
	}
	if j.Chat {
		return append(b, `"}]}`...)
	}
	return append(b, `"}`...)
}

// maxTokens is the cap that clients set: a round number above what they need.
func maxTokens(output int) int { return (output/512 + 1) * 512 }
