// Package emulator serves one emulated engine as a live OpenAI-compatible server: what vLLM 0.32
// (or SGLang) would answer, when it would answer, with its metrics, but with made-up text.
//
// The engine's clock is the wall clock times a speed. One goroutine ([Emulator.Run]) wakes the
// engine when its next step ends and tells each request how many tokens it has; each request's own
// goroutine writes them. A request that is told of a token before it wrote the last one writes both
// at once, so that a slow client, or a busy machine, never holds up the engine.
//
// There is no tokenizer: a token is four bytes of text (messages start at a token border), or an id
// where the client sends ids. Answers are made of four-byte words drawn from the prompt, so the same
// request gives the same answer, and an answer sent back in the next turn is found in the cache.
package emulator
