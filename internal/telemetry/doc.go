// Package telemetry is what every binary needs to be operated: logs in which untrusted text can do
// no harm, build information, and a metrics registry with capped labels and shared bucket bounds. It
// knows nothing of routing.
package telemetry
