// Package loopback finds ports of the loopback interface for servers that are started later, by
// programs that cannot say themselves which port they were given.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// The ports lie below those that systems give to outgoing connections (from 32768 on Linux, 49152
// elsewhere): no client's connection takes one between its finding and its use.
const (
	lowest  = 20000
	highest = 32767
	tries   = 1000
)

// Free returns n different addresses on 127.0.0.1 that nobody listens on now. Somebody else who looks
// for one at the same time may still be given it too.
func Free(ctx context.Context, n int) (addresses []string, err error) {
	return between(ctx, n, lowest, highest)
}

func between(ctx context.Context, n, low, high int) (addresses []string, err error) {
	var open []net.Listener // until all are found
	defer func() {
		for _, l := range open {
			err = errors.Join(err, l.Close())
		}
	}()
	for range tries {
		if len(open) == n {
			return addresses, nil
		}
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(low+rand.IntN(high-low+1)))
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		open, addresses = append(open, l), append(addresses, at)
	}
	return nil, fmt.Errorf("127.0.0.1: %d of %d free ports found between %d and %d", len(open), n, low, high)
}
