package extproc

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// Server is the ext_proc service. Its methods are safe for concurrent use.
type Server struct {
	router    *router.Router
	admission Admission
	log       *slog.Logger
	stats     Stats
	linger    time.Duration
	setting   setting
	answer    atomic.Pointer[Answer]
	parser    atomic.Pointer[request.Parser]

	health   *health
	rpc      *grpc.Server
	side     *grpc.Server // health alone
	streams  sync.Pool
	busy     occupancy // streams that carry an exchange
	cut      atomic.Bool
	reported atomic.Int64  // when a panic was last logged, Unix nanoseconds
	stopped  chan struct{} // closed by Stop
	once     sync.Once
}

// New returns a Server that listens nowhere yet. It must be ended by Shutdown or Stop. An error names
// the option at fault.
func New(o Options) (*Server, error) {
	o.Limits = o.Limits.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("extproc: %w", err)
	}
	s := &Server{router: o.Router, admission: o.Admission, log: o.Log, stats: o.Stats, linger: o.Linger, stopped: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.stats == nil {
		s.stats = noStats{}
	}
	m := &memory{pool: new(pool), maxBody: o.Limits.MaxBody}
	m.budget.limit = o.Limits.TotalBytes
	s.setting = setting{memory: m, stats: s.stats, limits: o.Limits, wait: o.Limits.Decision}
	if s.admission != nil {
		s.setting.wait += o.Limits.Queue
	}
	s.streams.New = func() any { return new(stream) }
	s.SetAnswer(o.Answer)
	s.SetParser(o.Parser)
	s.health = newHealth()
	s.rpc = grpc.NewServer(serverOptions(&o, m.pool)...)
	s.rpc.RegisterService(&service, s)
	s.health.register(s.rpc)
	s.side = grpc.NewServer()
	s.health.register(s.side)
	return s, nil
}

// service describes envoy.service.ext_proc.v3.ExternalProcessor.
var service = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName:    "Process",
		Handler:       func(srv any, rpc grpc.ServerStream) error { return srv.(*Server).process(rpc) },
		ServerStreams: true,
		ClientStreams: true,
	}},
	Metadata: "envoy/service/ext_proc/v3/external_processor.proto",
}

const serviceName = "envoy.service.ext_proc.v3.ExternalProcessor"

// Transport sizes: gateways send chunks of up to 1 MiB, and buffered bodies in one message.
const (
	streamWindow = 1 << 20
	connWindow   = 16 << 20
	messageSlack = 1 << 20   // of a message beyond its body
	socketBuffer = 128 << 10 // a body of 220 KB takes two writes instead of seven
)

func serverOptions(o *Options, p *pool) []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(p)),
		grpc.MaxRecvMsgSize(int(max(16<<20, o.Limits.MaxBody+messageSlack))),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.MaxConcurrentStreams(o.Limits.Streams),
		grpc.NumStreamWorkers(streamWorkers),
		experimental.BufferPool(p), // gRPC's own clears what it lends
		grpc.ReadBufferSize(socketBuffer),
		grpc.WriteBufferSize(socketBuffer),
		// Dead gateways must be noticed, and lively ones may ask whether we live.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	return opts
}

// streamWorkers is how many handlers keep their grown stacks for the next stream; beyond, a stream
// gets a goroutine of its own.
const streamWorkers = 64

// SetAnswer changes how decisions are told, from the next stream on.
func (s *Server) SetAnswer(a Answer) { s.answer.Store(&a) }

// SetParser changes how requests are read, from the next stream on.
func (s *Server) SetParser(p *request.Parser) { s.parser.Store(p) }

// SetReady tells the health service whether requests may come. It is not ready before.
func (s *Server) SetReady(ready bool) { s.health.ready(ready) }

// Serve answers a gateway's streams and health checks on lis, until Shutdown or Stop; then it
// returns nil.
func (s *Server) Serve(lis net.Listener) error { return serve(s.rpc, lis) }

// ServeHealth answers health checks alone, without TLS, on lis.
func (s *Server) ServeHealth(lis net.Listener) error { return serve(s.side, lis) }

func serve(g *grpc.Server, lis net.Listener) error {
	if err := g.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("cannot serve on %s: %w", lis.Addr(), err)
	}
	return nil
}

// open takes a stream from the pool.
func (s *Server) open(rpc grpc.ServerStream) *stream {
	s.stats.StreamOpened()
	st := s.streams.Get().(*stream)
	set := s.setting
	set.answer, set.parser = *s.answer.Load(), s.parser.Load()
	st.s, st.rpc, st.over, st.armed, st.sent = s, rpc, false, time.Time{}, nil
	st.x.reset(set)
	return st
}

// closed counts a stream that is over and keeps its memory, unless its timer may still fire.
func (s *Server) closed(st *stream, err error) {
	s.stats.StreamClosed(status.Code(err).String())
	if st.timer == nil || st.armed.IsZero() || st.timer.Stop() {
		st.rpc = nil
		s.streams.Put(st)
	}
}
