package emulator

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"github.com/presage-router/presage/lab/emulator/zmtp"
	"github.com/presage-router/presage/lab/engine"
)

// Sizes of a feed of KV events, as vLLM's.
const (
	feedDepth = 100_000 // messages for a subscriber that does not read
	feedKeep  = 10_000  // batches that can be asked for again
)

// Events says how KV events are published.
type Events struct {
	Topic string // first frame of every message; routers filter by it, as kv@ADDRESS@MODEL
	Array bool   // encode as vLLM did before 0.24, and SGLang does
}

// feed publishes the engine's KV events, numbered, and keeps the last ones for replay.
type feed struct {
	cfg Events
	pub *zmtp.Publisher

	mu   sync.Mutex
	seq  uint64   // of the next batch
	kept [][]byte // payloads of the last batches; that of number s is at s % feedKeep
}

func newFeed(cfg *Events) *feed {
	if cfg == nil {
		return nil
	}
	return &feed{cfg: *cfg, pub: zmtp.NewPublisher(feedDepth)}
}

// publish sends one batch.
func (f *feed) publish(payload []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kept) < feedKeep {
		f.kept = append(f.kept, payload)
	} else {
		f.kept[f.seq%feedKeep] = payload
	}
	f.pub.Send([]byte(f.cfg.Topic), binary.BigEndian.AppendUint64(nil, f.seq), payload)
	f.seq++
}

// from returns the batches from a number on that are still kept, and the number of the first.
func (f *feed) from(seq uint64) (first uint64, batches [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = max(seq, f.seq-uint64(len(f.kept)))
	for s := first; s < f.seq; s++ {
		batches = append(batches, f.kept[s%feedKeep])
	}
	return first, batches
}

var errReplay = errors.New("a replay is asked for by the number of a batch, 8 bytes")

// replay answers a request for old batches: each as a message of its own, then an end marker, whose
// number is -1.
func (f *feed) replay(request [][]byte, answer zmtp.Answer) error {
	if len(request) != 1 || len(request[0]) != 8 {
		return errReplay
	}
	seq, batches := f.from(binary.BigEndian.Uint64(request[0]))
	for _, b := range batches {
		if err := answer([]byte(f.cfg.Topic), binary.BigEndian.AppendUint64(nil, seq), b); err != nil {
			return err
		}
		seq++
	}
	return answer(nil, binary.BigEndian.AppendUint64(nil, math.MaxUint64), nil)
}

// ServeEvents publishes KV events to the subscribers of one listener and answers requests for old
// ones on the other, which may be nil, until ctx ends. The configuration must have Events.
func (e *Emulator) ServeEvents(ctx context.Context, pub, replay net.Listener) error {
	if e.feed == nil {
		return errors.New("the emulator publishes no KV events")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	if replay == nil {
		failed <- nil
	} else {
		go func() {
			defer cancel()
			failed <- zmtp.ServeRouter(ctx, replay, e.feed.replay)
		}()
	}
	err := e.feed.pub.Serve(ctx, pub)
	cancel()
	return errors.Join(err, <-failed)
}

// tellBlocks publishes the KV events of the engine's last steps. e.mu is held.
func (e *Emulator) tellBlocks(events []engine.KVEvent) {
	if e.feed == nil || len(events) == 0 {
		return
	}
	b := appendHead(nil, float64(time.Now().UnixNano())/1e9, len(events))
	for i := range events {
		ev := &events[i]
		var blk block
		if ev.Kind == engine.Stored {
			s := e.streams[uint32(ev.ID)]
			size := e.cfg.Engine.BlockSize
			blk = block{tokens: s.tokens[ev.First*size : (ev.First+len(ev.Hashes))*size], size: size, lora: s.adapter, adapter: s.name}
		}
		b = appendEvent(b, ev, &blk, e.feed.cfg.Array)
	}
	e.feed.publish(appendRank(b, e.cfg.Rank))
}
