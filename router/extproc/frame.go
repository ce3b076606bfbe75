package extproc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/presage-router/presage/router/extproc/wire"
)

// frame is one received message and the memory it lies in.
type frame struct {
	wire.Message
	buf mem.Buffer
}

// part is the body of the message.
func (f *frame) part() part { return part{data: f.Body, buf: f.buf, at: f.BodyAt} }

// free gives the memory back.
func (f *frame) free() {
	if f.buf != nil {
		f.buf.Free()
		f.buf = nil
	}
}

// reply is one message to be sent.
type reply struct{ data mem.BufferSlice }

// codec reads frames and writes replies; all other messages, those of the health service, are the
// generated types' business.
type codec struct {
	pool  mem.BufferPool
	other encoding.CodecV2
}

func newCodec(p mem.BufferPool) codec {
	return codec{pool: p, other: encoding.GetCodecV2(proto.Name)}
}

// Name is that of the codec that gateways ask for.
func (codec) Name() string { return proto.Name }

// Marshal gives away the buffers of a reply.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*reply); ok {
		return r.data, nil
	}
	data, err := c.other.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal %T: %w", v, err)
	}
	return data, nil
}

// Unmarshal reads a frame in place; only a message of several HTTP/2 frames is copied, once.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return c.other.Unmarshal(data, v)
	}
	f.buf = data.MaterializeToBuffer(c.pool)
	return f.Decode(f.buf.ReadOnlyData())
}

var _ encoding.CodecV2 = codec{}
