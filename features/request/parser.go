package request

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"

	"github.com/presage-router/presage/features/prefix"
)

// Config says how requests are read. Its maps are copied.
type Config struct {
	BlockSize int // bytes of decoded text per prefix block, up to prefix.MaxBlock; 0: prefix.DefaultBlock

	// Rewrite maps the model name of a request to the name its engine is asked for. The name "*"
	// stands for every name not listed, and for bodies without a model.
	Rewrite map[string]string

	Priorities map[string]int // objective name to priority; objectives not listed have priority 0

	// SLO is what requests for text carry where they name none themselves; zero fields: none.
	SLO SLO

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
	for from, to := range c.Rewrite {
		if to == everyModel {
			return nil, fmt.Errorf("rewrite %q: %q is not the name of a model", from, to)
		}
		if err := checkModel([]byte(to)); err != nil {
			return nil, fmt.Errorf("rewrite %q: %w", from, err)
		}
	}
	c.Rewrite, c.Priorities = maps.Clone(c.Rewrite), maps.Clone(c.Priorities)
	return &Parser{c: c}, nil
}

// Head reads the headers into r, which must be fresh or [Request.Reset], and decides whether the
// body must be read as well; end says that there is none. Where it returns false and no error, r
// is complete: an opaque request, to be routed at once, its body untouched. An error is an [*Error].
// Nothing of h is kept.
//
// Opaque is whatever is no POST, upgrades the connection, goes to a path of no known API, is no
// JSON by its content type (or, for audio, no multipart form), or is compressed: what cannot be
// scored can still be routed, and the engine has the say on it.
func (p *Parser) Head(r *Request, h *Head, end bool) (body bool, err error) {
	k := r.memory()
	path, api := route(h.path)
	r.Path = path
	p.identify(r, h)
	if string(h.method) != http.MethodPost || h.upgrade != nil || api == Opaque {
		return false, nil
	}
	if api == Audio {
		if !k.isForm(h.contentType) || end {
			return false, nil
		}
	} else if !isJSON(h.contentType) {
		return false, nil
	}
	encoded := len(h.encoding) > 0 && !bytes.EqualFold(h.encoding, []byte("identity"))
	if encoded && !p.c.RefuseEncoded {
		return false, nil
	}
	r.API = api
	switch {
	case encoded:
		return false, &Error{
			Status: http.StatusUnsupportedMediaType, Param: "content-encoding", Code: "unsupported_content_encoding",
			Message: "compressed bodies are not read here; send it uncompressed",
		}
	case end:
		return false, refuse("", "empty_body", "body: empty; send a JSON object")
	}
	p.levels(r)
	return true, nil
}

// levels gives a request for text the configured SLOs where it names none.
func (p *Parser) levels(r *Request) {
	if r.API == Embeddings || r.API == Audio {
		return
	}
	r.SLO.TTFT = cmp.Or(r.SLO.TTFT, p.c.SLO.TTFT)
	r.SLO.ITL = cmp.Or(r.SLO.ITL, p.c.SLO.ITL)
	r.SLO.E2E = cmp.Or(r.SLO.E2E, p.c.SLO.E2E)
}

// identify reads who asks and what for.
func (p *Parser) identify(r *Request, h *Head) {
	var ok [2]bool
	r.SLO.TTFT, ok[0] = slo(first(h.ttft, h.ttftAlias))
	r.SLO.ITL, ok[1] = slo(first(h.tpot, h.tpotAlias))
	for _, ok := range ok {
		if !ok {
			r.Ignored++
		}
	}
	r.Choices = 1
	r.Session, r.Tenant, r.ID = label(h.session), label(h.fairness), label(h.id)
	r.Priority = p.c.Priorities[string(first(h.objective, h.objectiveAlias))]
}

// isJSON reports whether a content type is one of JSON; none at all counts as one.
func isJSON(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte(";"))
	media = bytes.TrimSpace(media)
	const json, suffix = "application/json", "+json"
	if len(media) > len(suffix) && bytes.EqualFold(media[len(media)-len(suffix):], []byte(suffix)) {
		return true
	}
	return len(media) == 0 || bytes.EqualFold(media, []byte(json))
}

// Parse is [Parser.Head], and [Parser.Body] where it is wanted. A nil body is none.
func (p *Parser) Parse(r *Request, h *Head, body []byte) error {
	want, err := p.Head(r, h, body == nil)
	if err != nil || !want {
		return err
	}
	return p.Body(r, body)
}
