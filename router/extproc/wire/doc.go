// Package wire reads and writes the messages of Envoy's ext_proc protocol (service
// envoy.service.ext_proc.v3.ExternalProcessor) straight from and to their protobuf encoding.
//
// The generated types of go-control-plane would do the same, but cost the service a quarter of its
// CPU per request: every header of every request becomes two allocations there, bodies are copied
// twice, and linking them registers hundreds of unrelated messages. Here a [Message] is a set of
// spans of the received bytes, headers are read in one pass, and a body piece is sent as a short
// prefix followed by the received bytes themselves. The generated types are the oracle of the tests.
//
// Field numbers are those of envoy/service/ext_proc/v3/external_processor.proto,
// envoy/config/core/v3/base.proto and google/protobuf/struct.proto.
package wire
