package demo

import (
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/load"
	"github.com/presage-router/presage/router"
)

// Settings is what the service is started with.
type Settings struct {
	ExtProc, Admin string            // listening addresses; port 0 takes a free one
	Health         string            // of the gRPC health service, for Envoy's health checks
	Endpoints      []*fleet.Endpoint // the emulated engines
	Policy         string
	SLO            load.SLO // default, on the wall clock
	Answers        int      // endpoints per answer
	Seed           uint64
	Observer       router.Observer // receives every finished request
}

// Service is the running service.
type Service interface {
	ExtProc() string // where it listens
	Admin() string   // where it listens; empty: nowhere
	Stop() error     // ends it at once, with no goroutine or socket left
}

// Start starts the service. A policy that it does not know, or a port in use, is an error in words
// for the operator.
type Start func(Settings) (Service, error)
