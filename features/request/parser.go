package request

import (
	"fmt"
	"maps"

	"github.com/presage-router/presage/features/prefix"
)

// Config says how requests are read. Its maps are copied.
type Config struct {
	BlockSize int // bytes of decoded text per prefix block, up to prefix.MaxBlock; 0: prefix.DefaultBlock

	// Rewrite maps the model name of a request to the name its engine is asked for. The name "*"
	// stands for every name not listed, and for bodies without a model.
	Rewrite map[string]string

	Priorities map[string]int // objective name to priority; objectives not listed have priority 0

	// Adapter reports whether a model name is a LoRA adapter. It must be safe for concurrent use.
	// Nil: no name is one.
	Adapter func(model string) bool

	// RefuseEncoded answers compressed bodies of the known APIs with 415 instead of routing them
	// unread.
	RefuseEncoded bool
}

// Parser reads requests. It is immutable, and safe for concurrent use: what parsing needs beside
// it lives in the [Request], so that reusing requests reuses memory.
type Parser struct {
	c Config
}

// NewParser returns a Parser, or an error that names the wrong field of the configuration.
func NewParser(c Config) (*Parser, error) {
	if c.BlockSize < 0 || c.BlockSize > prefix.MaxBlock {
		return nil, fmt.Errorf("block size %d: not within 1 to %d bytes", c.BlockSize, prefix.MaxBlock)
	}
	if c.BlockSize == 0 {
		c.BlockSize = prefix.DefaultBlock
	}
	c.Rewrite, c.Priorities = maps.Clone(c.Rewrite), maps.Clone(c.Priorities)
	return &Parser{c: c}, nil
}

// Head reads the headers into r, which must be fresh or [Request.Reset], and decides whether the
// body must be read as well; end says that there is none. Where it returns false and no error, r
// is complete: an opaque request, to be routed at once, its body untouched. An error is an [*Error].
// Nothing of h is kept.
func (p *Parser) Head(r *Request, h *Head, end bool) (body bool, err error) {
	return false, nil
}

// Body reads the complete body of a request whose head wanted it. The bytes are not changed, and
// nothing of them is kept. An error is an [*Error]; r must not be routed then.
func (p *Parser) Body(r *Request, body []byte) error {
	return nil
}

// Parse is [Parser.Head], and [Parser.Body] where it is wanted. A nil body is none.
func (p *Parser) Parse(r *Request, h *Head, body []byte) error {
	want, err := p.Head(r, h, body == nil)
	if err != nil || !want {
		return err
	}
	return p.Body(r, body)
}
