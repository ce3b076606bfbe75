package emulator

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Sizes of the pseudo-tokenizer.
const (
	tokenBytes  = 4  // bytes of text per token
	mediaTokens = 64 // tokens of an image, audio clip or video
)

// Marks stand for the special tokens of a chat template. Text tokens cannot equal them: they are no
// valid UTF-8.
const (
	markRole  = 0xfffffff0 // begins a message
	markEnd   = 0xfffffff1 // ends a message
	markMedia = 0xfffffff2
)

// appendText adds the tokens of a text; the last one is padded.
func appendText(dst []uint32, s string) []uint32 {
	for len(s) >= tokenBytes {
		dst = append(dst, uint32(s[0])|uint32(s[1])<<8|uint32(s[2])<<16|uint32(s[3])<<24)
		s = s[tokenBytes:]
	}
	if len(s) > 0 {
		var b [tokenBytes]byte
		copy(b[:], s)
		dst = append(dst, binary.LittleEndian.Uint32(b[:]))
	}
	return dst
}

// appendRole begins a message.
func appendRole(dst []uint32, role string) []uint32 {
	return append(dst, markRole, uint32(xxhash.Sum64String(role)))
}

// appendMedia adds what a vision or audio encoder would make of a part: equal parts are equal.
func appendMedia(dst []uint32, part []byte) []uint32 {
	h := xxhash.Sum64(part)
	dst = append(dst, markMedia)
	for i := range mediaTokens - 1 {
		dst = append(dst, uint32(mix(h+uint64(i))))
	}
	return dst
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const (
	consonants = "bdfgklmnprstvzhj"
	vowels     = "aeiouaei"
)

// word is the i-th token of an answer: a space and a syllable.
func word(seed uint64, i int) (w [tokenBytes]byte) {
	x := mix(seed + uint64(i))
	return [tokenBytes]byte{' ', consonants[x&15], vowels[x>>4&7], consonants[x>>7&15]}
}

// chain returns the hashes of the full blocks of tokens, each over its parent and its tokens.
func chain(root uint64, tokens []uint32, size int) []uint64 {
	out := make([]uint64, len(tokens)/size)
	buf := make([]byte, 8+4*size)
	for i := range out {
		binary.LittleEndian.PutUint64(buf, root)
		for j, t := range tokens[i*size : (i+1)*size] {
			binary.LittleEndian.PutUint32(buf[8+4*j:], t)
		}
		root = xxhash.Sum64(buf)
		out[i] = root
	}
	return out
}

// digest is a hash of all tokens, the seed of an answer.
func digest(tokens []uint32) uint64 {
	h := uint64(len(tokens))
	for _, t := range tokens {
		h = mix(h ^ uint64(t))
	}
	return h
}
