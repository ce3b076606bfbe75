// Package request turns API bodies and headers into a [Request]: what the router needs to know of a
// request before it is answered. It reads the OpenAI and Anthropic shapes as the engines read them
// and never changes a byte that it does not have to.
//
// A [Parser] first reads the [Head]; many requests need no more, and their bodies pass untouched. A
// body that is read gives model, limits and session, and in the same pass the chain of hashes of
// its prompt (package prefix). The text of the answer can continue that chain, so that the next
// turn of a conversation finds the whole of it.
//
// Where the field leaves a choice, it is made as follows:
//
//   - What cannot be read is routed, not refused: other methods, paths and content types, compressed
//     bodies (or 415, if so configured), forms that are broken. The engine has the say on them.
//   - Refused with 400 is what an engine would refuse as well, or could read otherwise than we do: no
//     JSON object, text after it, no UTF-8, a byte order mark, nesting past 128 levels, duplicates
//     of members that are read, no model or one of an impossible name, a prompt of no legal type.
//   - An empty list, null, or nothing in place of a prompt is routed: there is nothing to score.
//   - A prompt shorter than one block has no key; nothing trivial is ever shared.
//   - A string and one part of text are the same content, also as the system prompt of Messages,
//     which is the same as a message of the role system.
//   - Media, and parts of unknown types, count as boundaries with the hash of all they hold.
//   - Of a list of prompts, the first begins the key and the others follow it.
package request
