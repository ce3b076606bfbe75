package extproc

import (
	"bytes"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router/extproc/answer"
	"github.com/presage-router/presage/router/extproc/wire"
)

// form decides how the answer is read: only what the APIs promise, only when it succeeded, and never
// what is compressed. Only what is read in full duplex can be renamed: elsewhere bodies are not ours
// to change.
func (x *exchange) form(content, encoding []byte) {
	p := &x.response
	form := answer.Opaque
	if x.api != request.Opaque && p.success() && p.mode != wire.None {
		kind, _, _ := bytes.Cut(content, []byte(";"))
		kind = bytes.TrimSpace(kind)
		switch {
		case bytes.EqualFold(kind, eventStream):
			form = answer.Events
		case bytes.EqualFold(kind, json) || bytes.HasSuffix(kind, jsonSuffix):
			form = answer.Document
		case len(kind) > 0 && x.api != request.Audio: // transcripts may be plain text
			p.alien = true
		}
		if len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
			form = answer.Opaque
		}
	}
	x.reader.Reset(form, &x.req)
	p.rename = form != answer.Opaque && duplex(p.mode) && x.req.Rewrite != "" && x.req.Model != ""
	if p.rename {
		x.renamer.Reset(form, x.req.Target(), x.req.Model)
	}
}

// success reports whether the status promises an answer to an API request.
func (p *responseSide) success() bool { return p.status >= 200 && p.status < 300 }

// cause judges an answer that has ended.
func (x *exchange) cause() fleet.Cause {
	p := &x.response
	switch {
	case !p.headed: // nothing is known but that it ended
		return fleet.Complete
	case p.status >= 400 || p.failed || p.alien || x.reader.Failed():
		return fleet.UpstreamError
	case x.api != request.Opaque && !p.success():
		return fleet.UpstreamError
	case !x.reader.Ended():
		return fleet.Truncated
	}
	return fleet.Complete
}

// unseen reports whether the gateway shows nothing of the answer after its headers: then the end of
// the stream is all that tells of its end.
func (x *exchange) unseen() bool {
	return x.response.phase == bodyOwed && x.response.mode == wire.None
}
