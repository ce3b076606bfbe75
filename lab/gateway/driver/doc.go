// Package driver plays a gateway without any HTTP around it: it opens ext_proc streams to an endpoint
// picker and sends the messages that Envoy would, as fast as the picker answers. It measures the
// picker, not a proxy.
package driver
