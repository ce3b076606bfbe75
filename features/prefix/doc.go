// Package prefix estimates which endpoint holds which part of a prompt in its KV cache.
//
// A [Hasher] cuts the decoded text of a prompt (or its token ids) into blocks of fixed size and
// chains their hashes, so that block i stands for everything up to its end: equal hashes mean equal
// identity (model or adapter, cache salt) and equal prompts so far, boundaries of messages
// included. No tokenizer is needed, and block borders never move.
//
// An [Index] remembers which endpoint instance was sent which blocks, with one least-recently-used
// list per instance, sized like the engine's own cache and emptied in the engine's own order: the
// last block of a request first. Beyond the first 32 blocks of a prompt it remembers one in four, so that
// a hit is up to three blocks short there, and never too long. It is told the truth afterwards
// ([Index.Correct], [Index.Withdraw]) and forgets an instance that left.
//
// The package holds no clock, goroutine or socket.
package prefix
