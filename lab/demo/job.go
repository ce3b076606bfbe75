package demo

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

// Workload is what the policies are given to do.
type Workload struct {
	About    string        // as shown to the operator
	Jobs     []Job         // by time
	Duration time.Duration // from the start to the last arrival, at most
	SLO      SLO
	Blocks   int // KV blocks of each engine, the null block included; 0: the GPU's own
}

// SLO is what counts as served well.
type SLO struct{ TTFT, ITL time.Duration }

// body is the request as a client sends it. The answer's length goes in a field of its own: the cap
// on it tells a router little, as in life.
func (j *Job) body(model string) []byte {
	size := 256
	for _, p := range j.Parts {
		size += 4 * p.Tokens
	}
	b := make([]byte, 0, size)
	b = append(b, `{"model":"`...)
	b = append(b, model...)
	b = append(b, `","stream":true,"stream_options":{"include_usage":true},"max_tokens":`...)
	b = strconv.AppendInt(b, int64(maxTokens(j.Output)), 10)
	b = append(b, `,"vllm_xargs":{"output_tokens":`...)
	b = strconv.AppendInt(b, int64(j.Output), 10)
	b = append(b, `},`...)
	rest := j.Parts
	if j.Chat {
		b = append(b, `"messages":[{"role":"system","content":"`...)
		b = rest[0].append(b)
		b = append(b, `"},{"role":"user","content":"`...)
		rest = rest[1:]
	} else {
		b = append(b, `"prompt":"`...)
	}
	for _, p := range rest {
		b = p.append(b)
	}
	if j.Chat {
		return append(b, `"}]}`...)
	}
	return append(b, `"}`...)
}

// maxTokens is the cap that clients set: a round number above what they need.
func maxTokens(output int) int { return (output/512 + 1) * 512 }
