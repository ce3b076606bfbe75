// Package extproc is the service that an Envoy-based gateway asks where to send each request: one
// gRPC stream of Envoy's ext_proc protocol per HTTP exchange, led through the router's decision and
// on to the end of the answer.
//
// One stream is an exchange: a state machine per direction (see [phase]) that says after each
// message what the gateway is owed, and never lets a stream end well before that is sent: in
// FULL_DUPLEX_STREAMED mode the gateway would take the silence for an empty body. The machine holds
// no goroutine, socket or clock. Around it, a Server runs one goroutine per stream, the handler of
// gRPC, and a timer that answers in the handler's place when a decision, or the client's body, takes
// too long: in that mode the gateway has no timeout of its own.
//
// Answers pass through unchanged, by reference, while package answer reads what they say about
// themselves. Every routed request ends exactly once in the ledger, whatever the gateway, the client
// or the engine do.
package extproc
