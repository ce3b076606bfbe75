package emulator

import (
	"github.com/presage-router/presage/lab/engine"
	"github.com/tinylib/msgp/msgp"
)

// block is what an event tells of blocks beside their hashes.
type block struct {
	tokens  []uint32 // of all blocks of the event
	size    int      // tokens per block
	lora    int32    // 0: none
	adapter string
}

// kvMedium is where the blocks are.
const kvMedium = "GPU"

// appendHead begins a batch of events in vLLM's encoding: [time, [event, …], rank]. The events and
// the rank follow.
func appendHead(b []byte, ts float64, events int) []byte {
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendFloat64(b, ts)
	return msgp.AppendArrayHeader(b, uint32(events))
}

// appendRank ends a batch.
func appendRank(b []byte, rank int) []byte { return msgp.AppendInt(b, rank) }

// appendEvent adds one event: a map, as vLLM writes from 0.24 on, or the array of older versions and
// of SGLang, whose trailing defaults are left out.
func appendEvent(b []byte, e *engine.KVEvent, blk *block, array bool) []byte {
	switch {
	case e.Kind == engine.Stored && array:
		b = msgp.AppendArrayHeader(b, 8)
		b = msgp.AppendString(b, "BlockStored")
		b = appendHashes(b, e.Hashes)
		b = appendParent(b, e)
		b = appendTokens(b, blk.tokens)
		b = msgp.AppendInt(b, blk.size)
		b = appendLoRA(b, blk.lora)
		b = msgp.AppendString(b, kvMedium)
		return appendAdapter(b, blk.adapter)
	case e.Kind == engine.Stored:
		b = msgp.AppendMapHeader(b, 9)
		b = appendPair(b, "type", "BlockStored")
		b = appendHashes(msgp.AppendString(b, "block_hashes"), e.Hashes)
		b = appendParent(msgp.AppendString(b, "parent_block_hash"), e)
		b = appendTokens(msgp.AppendString(b, "token_ids"), blk.tokens)
		b = msgp.AppendInt(msgp.AppendString(b, "block_size"), blk.size)
		b = appendLoRA(msgp.AppendString(b, "lora_id"), blk.lora)
		b = appendPair(b, "medium", kvMedium)
		b = appendAdapter(msgp.AppendString(b, "lora_name"), blk.adapter)
		return msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	case e.Kind == engine.Removed && array:
		b = msgp.AppendArrayHeader(b, 3)
		b = msgp.AppendString(b, "BlockRemoved")
		return msgp.AppendString(appendHashes(b, e.Hashes), kvMedium)
	case e.Kind == engine.Removed:
		b = msgp.AppendMapHeader(b, 4)
		b = appendPair(b, "type", "BlockRemoved")
		b = appendHashes(msgp.AppendString(b, "block_hashes"), e.Hashes)
		b = appendPair(b, "medium", kvMedium)
		return msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	case array:
		return msgp.AppendString(msgp.AppendArrayHeader(b, 1), "AllBlocksCleared")
	}
	return appendPair(msgp.AppendMapHeader(b, 1), "type", "AllBlocksCleared")
}

func appendPair(b []byte, key, value string) []byte {
	return msgp.AppendString(msgp.AppendString(b, key), value)
}

func appendHashes(b []byte, hashes []uint64) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(hashes)))
	for _, h := range hashes {
		b = msgp.AppendUint64(b, h)
	}
	return b
}

func appendParent(b []byte, e *engine.KVEvent) []byte {
	if e.First == 0 {
		return msgp.AppendNil(b)
	}
	return msgp.AppendUint64(b, e.Parent)
}

func appendTokens(b []byte, tokens []uint32) []byte {
	b = msgp.AppendArrayHeader(b, uint32(len(tokens)))
	for _, t := range tokens {
		b = msgp.AppendUint32(b, t)
	}
	return b
}

func appendLoRA(b []byte, id int32) []byte {
	if id == 0 {
		return msgp.AppendNil(b)
	}
	return msgp.AppendInt32(b, id)
}

func appendAdapter(b []byte, name string) []byte {
	if name == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, name)
}
