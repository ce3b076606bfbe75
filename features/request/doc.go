// Package request turns API bodies and headers into a [Request]: what the router needs to know of a
// request before it is answered. It reads the OpenAI and Anthropic shapes as the engines read them
// and never changes a byte that it does not have to.
package request
