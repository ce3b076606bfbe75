// Package answer reads what an engine's answer says about itself while its bytes pass by: tokens as
// they arrive, the end, errors, and usage. It understands server-sent events and JSON documents of
// the OpenAI (chat, completions, responses) and Anthropic (messages) APIs as engines really send
// them.
//
// The result depends on the bytes only, never on how the network cut them. Memory is bounded
// whatever comes: what is too long to be read makes usage unknown, never the answer fail.
package answer
