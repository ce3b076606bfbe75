package demo

// Part is a piece of prompt text: equal parts have equal text, different seeds have different ones.
type Part struct {
	Seed   uint64
	Tokens int
}

const letters = "abcdefghijklmnopqrstuvwxyz012345"

// append adds the part's text: a word of three letters and a space for each token, as the emulated
// engines count tokens.
func (p Part) append(dst []byte) []byte {
	x := p.Seed
	for range p.Tokens {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		dst = append(dst, letters[z&31], letters[z>>5&31], letters[z>>10&31], ' ')
	}
	return dst
}
