// Package gateway is a small reverse proxy that asks an endpoint picker over Envoy's ext_proc
// protocol, so that the service can be run and tested without Envoy.
//
// It is faithful to Envoy 1.40 with FULL_DUPLEX_STREAMED bodies where an endpoint picker can tell:
// the order of messages, chunks of at most 64 KiB followed by an empty one with end_of_stream,
// content-length removed, dynamic metadata before the header as source of the destination, the
// served endpoint reported with the response headers, local replies passing through the picker, and
// streams reset at the end of every request. It differs where Envoy is unsafe: a picker that closes
// its stream without having answered gives a 500, not an empty body sent upstream, and a list of
// destinations that is used up gives the last answer, not a draw among all endpoints.
package gateway
