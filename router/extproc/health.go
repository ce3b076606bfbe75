package extproc

import (
	"sync"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// readiness are the names under which gateways and orchestrators ask whether requests may come; the
// last one is what other endpoint pickers call themselves.
var readiness = []string{"", "readiness", serviceName, "inference-extension"}

// liveness is the name under which orchestrators ask whether the process is to be restarted.
const liveness = "liveness"

// health answers gRPC health checks.
type health struct {
	server *grpchealth.Server

	mu       sync.Mutex
	draining bool
}

func newHealth() *health {
	h := &health{server: grpchealth.NewServer()}
	h.server.SetServingStatus(liveness, grpc_health_v1.HealthCheckResponse_SERVING)
	h.set(false)
	return h
}

func (h *health) register(g *grpc.Server) { grpc_health_v1.RegisterHealthServer(g, h.server) }

func (h *health) set(ready bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, name := range readiness {
		h.server.SetServingStatus(name, status)
	}
}

// ready changes the readiness; while draining it stays false.
func (h *health) ready(ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(ready && !h.draining)
}

// drain ends the readiness for good; the process lives on.
func (h *health) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	h.set(false)
}

// stop ends everything.
func (h *health) stop() {
	h.drain()
	h.server.Shutdown()
}
