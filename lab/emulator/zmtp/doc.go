// Package zmtp speaks as much of ZeroMQ's wire protocol (ZMTP 3.0, NULL mechanism) as a publisher of
// KV events needs: the server's side of a PUB socket and of a ROUTER that answers replay requests.
//
// https://rfc.zeromq.org/spec/23/ (ZMTP 3.0), /29/ (PUB-SUB).
package zmtp
