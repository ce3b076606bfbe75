package gateway

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Destination says how the picker's answer is used, after Envoy's two kinds of clusters.
type Destination uint8

const (
	// OverrideHost tries the listed endpoints in order until one answers (dynamic metadata first,
	// then the header).
	OverrideHost Destination = iota
	// OriginalDst takes the header as the one address to dial; a list is no address.
	OriginalDst
)

// Config says how requests are processed.
type Config struct {
	EPP          string        // host:port of the endpoint picker's gRPC service, plain text
	Destination  Destination   // how its answer is used
	SubsetHeader string        // request header that becomes the subset hint; empty: no hint is sent
	RetryBuffer  int           // bytes of a request body kept for a retry; 0: 1 MiB, longer bodies are not retried
	IdleTimeout  time.Duration // of a request on which nothing moves; 0: 5 min
}

const (
	chunkSize    = 64 << 10 // largest body message
	maxAttempts  = 3        // num_retries 2
	dialTimeout  = time.Second
	windowStream = 1 << 20
	windowConn   = 16 << 20
)

// Gateway forwards requests to the endpoint that the picker names. It is an [http.Handler].
type Gateway struct {
	cfg       Config
	conn      *grpc.ClientConn
	epp       extproc.ExternalProcessorClient
	transport *http.Transport
	buffers   sync.Pool // of *[chunkSize]byte
}

// New returns a gateway; the picker is dialled with the first request.
func New(cfg Config) (*Gateway, error) {
	if cfg.RetryBuffer <= 0 {
		cfg.RetryBuffer = 1 << 20
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = 5 * time.Minute
	}
	conn, err := grpc.NewClient("passthrough:///"+cfg.EPP,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(windowStream), grpc.WithInitialConnWindowSize(windowConn),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("endpoint picker %s: %w", cfg.EPP, err)
	}
	return &Gateway{
		cfg: cfg, conn: conn, epp: extproc.NewExternalProcessorClient(conn),
		transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		buffers: sync.Pool{New: func() any { return new([chunkSize]byte) }},
	}, nil
}

// Close ends the connection to the picker and the idle ones to the endpoints. Requests still open
// fail.
func (g *Gateway) Close() error {
	g.transport.CloseIdleConnections()
	return g.conn.Close()
}

// ServeHTTP forwards one request. It never buffers more of it than one chunk and the retry buffer.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		http.Error(w, "CONNECT is not supported", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	stream, err := g.epp.Process(ctx)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // an HTTP/2 server is full duplex anyway and says so by an error
	x := &exchange{
		Gateway: g, w: w, r: r, control: control, ctx: ctx, cancel: cancel, stream: stream,
		hint: subsetHint(r.Header, g.cfg.SubsetHeader), header: cleanRequest(r),
		body: newSpool(ctx, g.cfg.RetryBuffer), taken: make(chan *http.Response, 1), uploaded: make(chan struct{}),
	}
	x.idle = time.AfterFunc(g.cfg.IdleTimeout, func() { cancel(errIdle) })
	x.run()
}

var _ http.Handler = (*Gateway)(nil)
