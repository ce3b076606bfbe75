package answer

import (
	"math"
	"strconv"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// maxTokens is the largest count that is believed: no model has a context of 16 million tokens.
const maxTokens = 1 << 24

// unknown is the usage of an answer that said nothing.
var unknown = router.Usage{Prompt: features.Unknown, Cached: features.Unknown, Output: features.Unknown}

// usage is what the answer has reported so far. Reports are cumulative (an engine may repeat them on
// every event, or spread them over the first and the last), so the largest figure of each is the
// right one: nothing is added up, and a later event that leaves a figure out, or says 0, loses
// nothing.
type usage struct {
	router.Usage
	odd bool // a figure was impossible: nothing of this answer's usage is believed
}

// read consumes a usage object; anything else in its place says nothing. Prompt and cached tokens
// are taken as reported: OpenAI's prompt count includes the cached ones, Anthropic's may not.
func (u *usage) read(c *cursor) {
	if !c.enter('{') {
		return
	}
	for c.member() {
		switch string(c.key) {
		case "prompt_tokens", "input_tokens":
			u.count(c, &u.Prompt)
		case "completion_tokens", "output_tokens":
			u.count(c, &u.Output)
		case "cache_read_input_tokens":
			u.count(c, &u.Cached)
		case "prompt_tokens_details", "input_tokens_details":
			u.details(c)
		default:
			c.skip()
		}
	}
}

func (u *usage) details(c *cursor) {
	if !c.enter('{') {
		return
	}
	for c.member() {
		if string(c.key) == "cached_tokens" {
			u.count(c, &u.Cached)
		} else {
			c.skip()
		}
	}
}

// count reads one figure: a number, or a number in a string. What is neither says nothing.
func (u *usage) count(c *cursor, n *int) {
	var text []byte
	switch b := c.peek(); {
	case b == '"':
		text = unquote(c.str())
	case b == '-' || b >= '0' && b <= '9':
		text = c.scalar()
	default:
		c.skip()
		return
	}
	v, ok := parse(text)
	switch {
	case !ok:
	case v < 0 || v > maxTokens || v != math.Trunc(v):
		u.odd = true
	default:
		*n = max(*n, int(v))
	}
}

// parse reads a short decimal number.
func parse(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 24 {
		return 0, false
	}
	v := 0.0
	for i, b := range text {
		if b < '0' || b > '9' || i > 14 { // the usual case is plain digits
			v, err := strconv.ParseFloat(string(text), 64)
			return v, err == nil || v != 0 // out of range is a number still, and an impossible one
		}
		v = v*10 + float64(b-'0')
	}
	return v, true
}

// result is the usage as it may be believed.
func (u *usage) result() router.Usage {
	if u.odd {
		return unknown
	}
	return u.Usage
}
