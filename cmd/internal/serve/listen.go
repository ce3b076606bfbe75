package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/presage-router/presage/cmd/internal/config"
)

// Addrs are the addresses really listened on, host:port; empty where a listener is off.
type Addrs struct{ ExtProc, Health, Admin string }

// listeners are the open sockets of a service; nil where one is off.
type listeners struct{ extproc, health, admin net.Listener }

func listen(ctx context.Context, c *config.Listen) (listeners, error) {
	var l listeners
	for _, x := range []struct {
		key, addr string
		to        *net.Listener
	}{{"listen.extproc", c.ExtProc, &l.extproc}, {"listen.health", c.Health, &l.health}, {"listen.admin", c.Admin, &l.admin}} {
		if x.addr == "" {
			continue
		}
		var lc net.ListenConfig
		lis, err := lc.Listen(ctx, "tcp", x.addr)
		if err != nil {
			l.close()
			return listeners{}, listenError(x.key, x.addr, err)
		}
		*x.to = lis
	}
	return l, nil
}

// listenError says which key is to blame and what to do about it.
func listenError(key, addr string, err error) error {
	what, do := err.Error(), "set "+key
	var op *net.OpError
	if errors.As(err, &op) {
		what = op.Err.Error()
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		what, do = "in use by another process", "free it or set "+key
	case errors.Is(err, syscall.EACCES):
		what, do = "not permitted", "take a port above 1023 or set "+key
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		what, do = "no address of this machine", "set "+key
	}
	return fmt.Errorf("%s %s: %s; %s", key, addr, what, do)
}

func (l *listeners) close() {
	for _, x := range []net.Listener{l.extproc, l.health, l.admin} {
		if x != nil {
			_ = x.Close()
		}
	}
}

func (l *listeners) addrs() Addrs {
	text := func(x net.Listener) string {
		if x == nil {
			return ""
		}
		return x.Addr().String()
	}
	return Addrs{ExtProc: text(l.extproc), Health: text(l.health), Admin: text(l.admin)}
}
