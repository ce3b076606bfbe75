package prefix

// grain says which blocks of a chain the index remembers: the first fine ones, and of the rest every
// stride-th, which stands for all since the one before. A prompt of 220 KB costs a third that way, and what
// it is believed to share with another is at most stride-1 blocks less than the truth, never more.
type grain struct{ fine, stride int }

// standard is the grain in use: single blocks for the first 8 KiB of text, about 2,000 tokens, then 1 KiB.
func standard() grain { return grain{fine: 32, stride: 4} }

// links is how many remembered blocks lie in the first n of a chain.
func (g grain) links(n int) int {
	if n <= g.fine {
		return n
	}
	return g.fine + (n-g.fine)/g.stride
}

// blocks is how many blocks of a chain the first n remembered ones stand for.
func (g grain) blocks(n int) int {
	if n <= g.fine {
		return n
	}
	return g.fine + (n-g.fine)*g.stride
}

// weight is how many blocks the i-th remembered one stands for.
func (g grain) weight(i int) uint16 {
	if i < g.fine {
		return 1
	}
	return uint16(g.stride)
}

// thin appends the remembered blocks of a chain to dst.
func (g grain) thin(dst, chain []uint64) []uint64 {
	n := min(g.fine, len(chain))
	dst = append(dst, chain[:n]...)
	for i := n + g.stride - 1; i < len(chain); i += g.stride {
		dst = append(dst, chain[i])
	}
	return dst
}
