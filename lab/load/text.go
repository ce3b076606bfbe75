package load

import "strings"

// Part is a piece of prompt text: equal parts have equal text, different seeds have different ones.
type Part struct {
	Seed   uint64
	Tokens int
}

const letters = "abcdefghijklmnopqrstuvwxyz012345"

// common are words that are one token, with the space before them, in the vocabularies of language models, of code
// too.
var common = strings.Fields(`the of to and in is it for that this with not if return from import class def as on be are or by
an at will can may was when which other than only all any no one two new first last same name value type list file line time
number order object string function method argument default example set get use used make call called code data read write`)

// letters adds the part's text as the emulated engines count tokens: a word of three letters and a
// space for each.
func (p Part) letters(dst []byte) []byte {
	for z := range p.draws {
		dst = append(dst, letters[z&31], letters[z>>5&31], letters[z>>10&31], ' ')
	}
	return dst
}

// words adds the part's text as the tokenizers of language models count tokens: a space and a common
// word for each, about. It needs no escape in JSON.
func (p Part) words(dst []byte) []byte {
	for z := range p.draws {
		dst = append(append(dst, ' '), common[z%uint64(len(common))]...)
	}
	return dst
}

// draws yields a random number for each token, the same for equal parts.
func (p Part) draws(yield func(uint64) bool) {
	x := p.Seed
	for range p.Tokens {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		if !yield(z ^ z>>31) {
			return
		}
	}
}
