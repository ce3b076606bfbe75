package extproc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// Options are what a Server is made of. Router and Parser must be set.
type Options struct {
	Router    *router.Router
	Parser    *request.Parser
	Admission Admission    // nil: every request is routed at once
	Log       *slog.Logger // nil: silence. There is no line per request
	Stats     Stats        // nil: nothing is counted
	Limits    Limits
	Answer    Answer
	TLS       *tls.Config // nil: plaintext HTTP/2. See [SelfSigned] and [Files]

	// Linger is how long [Server.Shutdown] goes on taking new requests, so that the gateway's health
	// checks notice before its connections are told to go away. 0: not at all.
	Linger time.Duration
}

// Admission holds requests back before they are routed. Admit may wait; ctx ends when the client
// leaves or after [Limits.Queue]. Its error is told to the client: see [Refusal].
type Admission interface {
	// Admit returns nil when the request, whose body has the given size in bytes, may be routed now.
	Admit(ctx context.Context, req *request.Request, size int) error
}

// Limits bound what clients and gateways can take. Zero fields take the defaults.
type Limits struct {
	MaxBody    int64         // bytes of one request body that must be read; 64 MiB. Beyond: 413
	TotalBytes int64         // bytes of all request bodies being held; 512 MiB. Beyond: 503 at once
	Decision   time.Duration // from the complete request to its answer; 5 s. Beyond: 503
	Queue      time.Duration // longest wait in Admission, on top of Decision; 30 s
	BodyIdle   time.Duration // silence while a request body is read; 30 s. Beyond: 408
	Idle       time.Duration // silence after which a routed request counts as lost; 10 min
	MaxAge     time.Duration // age at which a routed request counts as lost; 1 h
	Streams    uint32        // concurrent streams of one connection; 50,000
}

func (l Limits) withDefaults() Limits {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if l.MaxBody == 0 {
		l.MaxBody = 64 << 20
	}
	if l.TotalBytes == 0 {
		l.TotalBytes = 512 << 20
	}
	def(&l.Decision, 5*time.Second)
	def(&l.Queue, 30*time.Second)
	def(&l.BodyIdle, 30*time.Second)
	def(&l.Idle, 10*time.Minute)
	def(&l.MaxAge, time.Hour)
	if l.Streams == 0 {
		l.Streams = 50_000
	}
	return l
}

func (l Limits) check() error {
	for name, v := range map[string]int64{
		"max body": l.MaxBody, "total bytes": l.TotalBytes, "decision deadline": int64(l.Decision), "queue": int64(l.Queue),
		"body idle": int64(l.BodyIdle), "idle": int64(l.Idle), "max age": int64(l.MaxAge),
	} {
		if v < 0 {
			return fmt.Errorf("%s: %d is negative; use 0 for the default", name, v)
		}
	}
	return nil
}

// Answer is how the gateway is told about a decision.
type Answer struct {
	// Endpoints is how many addresses are named, in order of preference. Only gateways that walk
	// lists, as Envoy's override_host does, understand more than one. 0 is 1.
	Endpoints       int
	DecisionHeader  bool // the client's response carries x-presage-decision, the id of the decision
	ClearRouteCache bool // the gateway matches its routes again after the decision
}

func (o *Options) check() error {
	switch {
	case o.Router == nil:
		return errors.New("no router")
	case o.Parser == nil:
		return errors.New("no parser")
	case o.Answer.Endpoints < 0:
		return fmt.Errorf("answer endpoints: %d is negative", o.Answer.Endpoints)
	case o.Linger < 0:
		return fmt.Errorf("linger: %s is negative", o.Linger)
	}
	return o.Limits.check()
}
