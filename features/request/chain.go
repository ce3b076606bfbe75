package request

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/presage-router/presage/features/prefix"
)

// The boundaries of a prompt. Their values, the order below and the form of values without text are
// the key of a prefix: changing them makes replicas of different versions disagree.
const (
	markOption  prefix.Mark = iota + 1 // a parameter that changes how the prompt is built; value: its hash
	markSection                        // tools and the like, as JSON of one form
	markMessage                        // a message; value: hash of its role
	markPart                           // the next part of a message
	markMedia                          // an image or the like; value: its hash
	markName                           // who speaks, or which call is answered; value: its hash
	markReason                         // reasoning
	markCalls                          // calls of tools; value: hash of the call's id, where it stands apart
	markArgs                           // the arguments of a call
	markResult                         // the result of a call; value: hash of the call's id
	markRefusal                        // a refusal
	markItem                           // an item of a kind not known
	markIDs                            // token ids from here on
	markNext                           // the next prompt of a list
)

// chain hashes the prompt in the order in which engines build it: identity, options, tools, system,
// messages. The order of members in the body does not count.
//
// Two things are left out though they may stand in a prompt: cache_control, which engines ignore
// and clients move from turn to turn, and the billing header that some clients put before their
// system prompt with a new hash in each request, and that engines strip.
func (p *Parser) chain(r *Request, k *work) *Error {
	k.hash.Reset(p.c.BlockSize, prefix.Root(r.Target(), "", k.salt()), k.hash.Chain())
	for f := noField + 1; f <= lastOption; f++ {
		if v := k.fields[f]; !absent(v) {
			k.hash.Mark(markOption, uint64(f))
			k.hash.Mark(markOption, k.digest(v))
		}
	}
	for f := lastOption + 1; f <= lastSection; f++ {
		if v := k.fields[f]; !absent(v) && !empty(v) {
			k.hash.Mark(markSection, uint64(f))
			k.section(v)
		}
	}
	var err *Error
	switch r.API {
	case Completions:
		err = k.prompts(r, fieldPrompt, "prompt")
	case Embeddings:
		if err = k.prompts(r, fieldInput, "input"); err == nil {
			err = k.messages(r.API)
		}
		k.answer.ended = true
	case Responses:
		err = k.responses()
	case Chat, Messages:
		err = k.conversation(r.API)
	case Opaque, Audio: // not read as JSON
	}
	r.Blocks, r.BlockSize = slices.Clip(k.hash.Chain()), k.hash.Size()
	r.PromptBytes, r.MediaUnits = k.hash.Bytes(), k.media
	if !r.ExactTokens && r.PromptBytes > 0 {
		r.PromptTokens = max(1, int(float64(r.PromptBytes)/priorRatio+0.5))
	}
	return err
}

// salt returns what keeps apart the caches of clients that must not share one. A salt that is no
// string is none to the engine, but no other key's either.
func (k *work) salt() string {
	v := k.fields[fieldSalt]
	if absent(v) {
		return ""
	}
	if v[0] == '"' && len(v) <= bufSize {
		return string(appendText(k.buf[:0], v[1:len(v)-1]))
	}
	return hashed(k.digest(v))
}

// empty reports whether a value is a list or an object of nothing.
func empty(v []byte) bool {
	return v[0] == '[' && v[skipSpace(v, 1)] == ']' || v[0] == '{' && v[skipSpace(v, 1)] == '}'
}

// section writes tools and the like as text, without the cache_control of each.
func (k *work) section(v []byte) {
	if v[0] != '[' {
		k.canon(&k.hash, v)
		return
	}
	c := cursor{b: v}
	for c.enter(); c.more(); {
		k.hash.Mark(markPart, 0)
		if e := c.value(); e[0] == '{' {
			k.canonObject(&k.hash, e, "cache_control")
		} else {
			k.canon(&k.hash, e)
		}
	}
}

// hashText returns one hash of the text of a string, and of any other value's one form.
func (k *work) hashText(v []byte) uint64 {
	switch {
	case absent(v):
		return 0
	case v[0] != '"':
		return k.digest(v)
	}
	k.sum.Reset()
	k.text(&k.sum, v, 0)
	return k.sum.Sum64()
}

// The roles whose messages are written without their name at hand.
var (
	roleSystem    = xxhash.Sum64String("system")
	roleUser      = xxhash.Sum64String("user")
	roleAssistant = xxhash.Sum64String("assistant")
)
