package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Driver is a connection to an endpoint picker. Its methods are safe for concurrent use.
type Driver struct {
	conn *grpc.ClientConn
	epp  extproc.ExternalProcessorClient
}

// Dial returns a driver for the picker at host:port, in plaintext, dialled with the first exchange.
// The windows are those of a gateway that streams long bodies.
func Dial(addr string) (*Driver, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(16<<20),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("endpoint picker %s: %w", addr, err)
	}
	return &Driver{conn: conn, epp: extproc.NewExternalProcessorClient(conn)}, nil
}

// Close ends the connection.
func (d *Driver) Close() error { return d.conn.Close() }

// Result is what one exchange was answered.
type Result struct {
	Endpoint string        // named first
	Decision time.Duration // from the complete request to its answer
}

// errRefused is an exchange that the picker answered itself.
var errRefused = errors.New("refused by the endpoint picker")

// Exchange goes through one HTTP exchange: the request, and once that is answered, the response of the
// endpoint named. The stream is reset at the end, as Envoy does.
func (d *Driver) Exchange(ctx context.Context, x *Exchange) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.epp.Process(ctx)
	if err != nil {
		return Result{}, err
	}
	for _, m := range x.request {
		if err := stream.Send(m); err != nil {
			return Result{}, err
		}
	}
	sent := time.Now()
	var r Result
	for done := false; !done; {
		m, err := stream.Recv()
		if err != nil {
			return r, err
		}
		switch v := m.GetResponse().(type) {
		case *extproc.ProcessingResponse_RequestHeaders:
			r.Decision = time.Since(sent)
			r.Endpoint = destination(m)
		case *extproc.ProcessingResponse_RequestBody:
			done = v.RequestBody.GetResponse().GetBodyMutation().GetStreamedResponse().GetEndOfStream()
		case *extproc.ProcessingResponse_ImmediateResponse:
			return r, fmt.Errorf("%w: status %d: %s", errRefused, v.ImmediateResponse.GetStatus().GetCode(), v.ImmediateResponse.GetBody())
		default:
			return r, fmt.Errorf("unexpected answer %T to a request", v)
		}
	}
	if r.Endpoint == "" {
		return r, errors.New("an answer without an endpoint")
	}
	for _, m := range x.response(r.Endpoint) {
		if err := stream.Send(m); err != nil {
			return r, err
		}
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return r, err
		}
		if m.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetEndOfStream() {
			return r, nil
		}
	}
}

// destination is the first endpoint that an answer names.
func destination(m *extproc.ProcessingResponse) string {
	return m.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"].GetStringValue()
}
