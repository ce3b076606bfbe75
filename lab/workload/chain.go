package workload

// BlockTokens is the size of a block: the engines' default.
const BlockTokens = 16

// chain is the growing text of one conversation as hashes of its full blocks. Text is named, not
// stored: a piece with a name and a length stands for that many tokens, the same whenever the name is
// the same, so equal pieces after equal beginnings give equal hashes, at every block size of text.
type chain struct {
	blocks []uint64
	last   uint64 // hash of the last full block, or the root
	part   uint64 // hash of the pieces of the block that is not full yet
	fill   int    // tokens of it
	tokens int
}

// newChain begins a text. Texts of different salts (model, adapter, tenant with a cache of its own)
// share nothing.
func newChain(salt uint64) chain { return chain{last: mix(salt)} }

// append adds a piece of text.
func (c *chain) append(name uint64, tokens int) {
	c.tokens += tokens
	for at := 0; at < tokens; {
		n := min(BlockTokens-c.fill, tokens-at)
		c.part = mix(c.part ^ mix(name+uint64(at)) + uint64(n))
		c.fill += n
		at += n
		if c.fill == BlockTokens {
			c.last = mix(c.last ^ mix(c.part))
			c.blocks = append(c.blocks, c.last)
			c.part, c.fill = 0, 0
		}
	}
}

// view is the chain so far. Later appends do not change it.
func (c *chain) view() []uint64 { return c.blocks[:len(c.blocks):len(c.blocks)] }

// fork is a copy that grows on its own.
func (c *chain) fork() chain {
	f := *c
	f.blocks = c.view()
	return f
}

// grow makes room for text still to come, so that it is allocated once.
func (c *chain) grow(tokens int) {
	need := len(c.blocks) + (c.fill+tokens)/BlockTokens
	if need > cap(c.blocks) {
		c.blocks = append(make([]uint64, 0, need), c.blocks...)
	}
}
