package request

import "math"

// prompts writes the prompts of Completions and the inputs of Embeddings: a text, token ids, or a
// list of either. An empty list is routed like a missing prompt: the engine has the say on it.
func (k *work) prompts(r *Request, f field, name string) *Error {
	v := k.fields[f]
	if absent(v) {
		return nil
	}
	switch v[0] {
	case '"':
		k.text(&k.hash, v, 0)
		return nil
	case '[':
	default:
		return wrongKind(name, v[0], "a text, a list of texts, token ids, or a list of lists of token ids")
	}
	if empty(v) {
		return nil
	}
	var (
		n   int
		err *Error
	)
	switch v[skipSpace(v, 1)] {
	case '"':
		n, err = k.texts(v)
		k.several(r, n)
	case '[':
		n, err = k.idLists(r, v)
		k.several(r, n)
	default:
		k.answer.ended = true // the next turn would bring ids, of which the answer shows none
		k.hash.Mark(markIDs, 0)
		err = k.ids(r, &cursor{b: v})
	}
	if err != nil {
		return err.below(name)
	}
	return nil
}

// several notes that the engine has so many prompts to answer.
func (k *work) several(r *Request, n int) {
	r.Choices = min(r.Choices*max(n, 1), maxChoices)
	if n > 1 {
		k.answer.ended = true
	}
}

// texts writes a list of texts, one after the other: engines cache each for itself, but only the
// first can be told by where it begins.
func (k *work) texts(v []byte) (n int, err *Error) {
	c := cursor{b: v}
	for c.enter(); c.more(); n++ {
		if c.peek() != '"' {
			return n, wrongKind("", c.peek(), "texts alone in a list that begins with one").at(n)
		}
		if n > 0 {
			k.hash.Mark(markNext, 0)
		}
		c.i = k.text(&k.hash, c.b, c.i)
	}
	return n, nil
}

// idLists writes a list of lists of token ids.
func (k *work) idLists(r *Request, v []byte) (n int, err *Error) {
	k.answer.ended = true
	c := cursor{b: v}
	for c.enter(); c.more(); n++ {
		if c.peek() != '[' {
			return n, wrongKind("", c.peek(), "lists of token ids alone in a list that begins with one").at(n)
		}
		if n > 0 {
			k.hash.Mark(markNext, 0)
		}
		k.hash.Mark(markIDs, 0)
		if err := k.ids(r, &c); err != nil {
			return n, err.at(n)
		}
	}
	return n, nil
}

// ids writes token ids and counts them.
func (k *work) ids(r *Request, c *cursor) *Error {
	r.ExactTokens = true
	n := 0
	for c.enter(); c.more(); n++ {
		id, i := uint64(0), c.i
		for ; '0' <= c.b[i] && c.b[i] <= '9' && id <= math.MaxUint32; i++ {
			id = 10*id + uint64(c.b[i]-'0')
		}
		if last := c.b[i]; i == c.i || id > math.MaxUint32 || last == '.' || last == 'e' || last == 'E' {
			return refuse("", "invalid_type", "no token id; send whole numbers from 0 up alone").at(n)
		}
		c.i = i
		k.hash.WriteToken(uint32(id))
	}
	r.PromptTokens += n
	return nil
}
