package extproc

import (
	"google.golang.org/grpc/mem"

	"github.com/presage-router/presage/router/extproc/wire"
)

// Replies that change nothing. They are sent again and again and never written to.
var (
	replyRequestBody      = wire.AppendReply(nil, wire.RequestBody, nil, "")
	replyRequestTrailers  = wire.AppendTrailersReply(nil, wire.RequestTrailers)
	replyResponseHeaders  = wire.AppendReply(nil, wire.ResponseHeaders, nil, "")
	replyResponseBody     = wire.AppendReply(nil, wire.ResponseBody, nil, "")
	replyResponseTrailers = wire.AppendTrailersReply(nil, wire.ResponseTrailers)
)

// one is a message that lies in one piece.
func one(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b)} }
