package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen runs a socket until the test ends.
func listen(t *testing.T, run func(context.Context, net.Listener) error) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// dial connects as a peer of the given type and shakes hands.
func dial(t *testing.T, addr, kind string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	z, err := accept(c, kind, "PUB", "ROUTER") // a handshake is the same from both sides
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func (z *conn) say(t *testing.T, frames ...string) {
	t.Helper()
	var m [][]byte
	for _, f := range frames {
		m = append(m, []byte(f))
	}
	if err := z.send(m); err != nil {
		t.Fatal(err)
	}
	if err := z.w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func (z *conn) hear(t *testing.T) []string {
	t.Helper()
	m, err := z.message(func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range m {
		out = append(out, string(f))
	}
	return out
}

// subscribed waits until the publisher has as many subscriptions.
func (p *Publisher) subscribed(n int) {
	for {
		p.mu.Lock()
		have := 0
		for _, s := range p.peers {
			have += len(s.topics)
		}
		p.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestPublishByTopic(t *testing.T) {
	p := NewPublisher(10)
	addr := listen(t, p.Serve)
	a, b := dial(t, addr, "SUB"), dial(t, addr, "SUB")
	a.say(t, "\x01kv@1")
	if err := b.write(flagCommand, []byte("\x09SUBSCRIBE")); err != nil { // ZMTP 3.1, everything
		t.Fatal(err)
	}
	b.say(t, "\x01kv@1") // a second subscription makes no second copy
	p.subscribed(3)
	long := strings.Repeat("x", 70_000)
	p.Send([]byte("kv@2"), []byte("2"), nil)
	p.Send([]byte("kv@1@m"), []byte("1"), []byte(long))
	want := []string{"kv@1@m", "1", long}
	if d := cmp.Diff([]string{"kv@2", "2", ""}, b.hear(t)); d != "" {
		t.Error(d)
	}
	for name, z := range map[string]*conn{"a": a, "b": b} {
		if d := cmp.Diff(want, z.hearLong(t)); d != "" {
			t.Errorf("%s: %.200s", name, d)
		}
	}
	a.say(t, "\x00kv@1")
	p.subscribed(2)
	p.Send([]byte("kv@1"), nil)
	a.say(t, "\x01")
	p.subscribed(3)
	p.Send([]byte("after"), nil)
	if got := a.hear(t); got[0] != "after" {
		t.Errorf("after cancelling: %q", got)
	}
}

// hearLong is hear without the limit that we put on peers.
func (z *conn) hearLong(t *testing.T) []string {
	t.Helper()
	var out []string
	for {
		flags, err := z.r.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		var n uint64
		if flags&flagLong != 0 {
			var b [8]byte
			_, _ = io.ReadFull(z.r, b[:])
			n = binary.BigEndian.Uint64(b[:])
		} else {
			b, _ := z.r.ReadByte()
			n = uint64(b)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(z.r, body); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(body))
		if flags&flagMore == 0 {
			return out
		}
	}
}

// A subscriber that does not read misses messages; nobody waits for it and nothing piles up.
func TestSlowSubscriberMissesMessages(t *testing.T) {
	p := NewPublisher(5)
	addr := listen(t, p.Serve)
	dial(t, addr, "SUB").say(t, "\x01")
	p.subscribed(1)
	payload := make([]byte, 1<<20)
	for range 100 {
		p.Send([]byte("t"), payload)
	}
	if d := p.Dropped(); d == 0 || d >= 100 {
		t.Errorf("%d of 100 messages dropped", d)
	}
}

func TestPing(t *testing.T) {
	p := NewPublisher(5)
	for name, c := range map[string]struct {
		addr, kind string
	}{
		"PUB":    {listen(t, p.Serve), "SUB"},
		"ROUTER": {listen(t, func(ctx context.Context, l net.Listener) error { return ServeRouter(ctx, l, nil) }), "REQ"},
	} {
		z := dial(t, c.addr, c.kind)
		if err := z.write(flagCommand, []byte("\x04PING\x00\x0actx")); err != nil {
			t.Fatal(err)
		}
		if err := z.w.Flush(); err != nil {
			t.Fatal(err)
		}
		flags, body, err := z.read()
		if err != nil || flags&flagCommand == 0 || string(body) != "\x04PONGctx" {
			t.Errorf("%s: %x %q %v", name, flags, body, err)
		}
	}
}

func TestRouter(t *testing.T) {
	addr := listen(t, func(ctx context.Context, l net.Listener) error {
		return ServeRouter(ctx, l, func(m [][]byte, answer Answer) error {
			if string(m[0]) == "bad" {
				return io.ErrUnexpectedEOF
			}
			for _, word := range []string{"one", "two"} {
				if err := answer(m[0], []byte(word)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	req, dealer := dial(t, addr, "REQ"), dial(t, addr, "DEALER")
	req.say(t, "", "q")
	dealer.say(t, "d")
	for _, c := range []struct {
		z    *conn
		want []string
	}{{req, []string{"", "q", "one"}}, {req, []string{"", "q", "two"}}, {dealer, []string{"d", "one"}}, {dealer, []string{"d", "two"}}} {
		if d := cmp.Diff(c.want, c.z.hear(t)); d != "" {
			t.Error(d)
		}
	}
	req.say(t, "", "bad")
	if _, err := req.r.ReadByte(); err == nil {
		t.Error("the connection lives on after a bad request")
	}
}

// ready is the command that ends a peer's handshake.
func ready(kind string) string {
	body := appendProperty([]byte("\x05READY"), "Socket-Type", kind)
	return string([]byte{flagCommand, byte(len(body))}) + string(body)
}

// Peers that are none end their own connection only.
func TestBadPeers(t *testing.T) {
	p := NewPublisher(5)
	addr := listen(t, p.Serve)
	null := string(greeting())
	for name, first := range map[string]string{
		"http":         "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("x", 64),
		"old version":  "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01" + strings.Repeat("\x00", 53),
		"plain":        null[:12] + "PLAIN" + null[17:],
		"other socket": null + ready("PUSH"),
		"no type":      null + "\x04\x06\x05READY",
		"huge value":   null + "\x04\x16\x05READY\x0bSocket-Type\xff\xff\xff\xff",
		"no command":   null + "\x00\x01\x01",
		"huge frame":   null + ready("SUB") + "\x02\xff\xff\xff\xff\xff\xff\xff\xff",
		"many frames":  null + ready("SUB") + strings.Repeat("\x01\x00", 100),
		"two frames":   null + ready("SUB") + "\x01\x01\x01\x00\x01\x01",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, first); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") { // until it is closed
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	z := dial(t, addr, "SUB")
	z.say(t, "\x01")
	p.subscribed(1)
	p.Send([]byte("still here"))
	if got := z.hear(t); got[0] != "still here" {
		t.Errorf("a good peer hears %q", got)
	}
}

func TestTooManySubscriptions(t *testing.T) {
	p := NewPublisher(5)
	addr := listen(t, p.Serve)
	z := dial(t, addr, "SUB")
	for range maxTopics + 1 {
		if z.send([][]byte{{1, 'x'}}) != nil {
			break
		}
	}
	_ = z.w.Flush()
	if _, err := io.Copy(io.Discard, z.r); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// Whatever a peer sends ends in a message within the limits or an error.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x00\x01\x01"))
	f.Add([]byte("\x01\x00\x00\x02ab"))
	f.Add([]byte("\x04\x06\x04PING\x00\x00\x00"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x01\x00"))
	f.Add([]byte(ready("SUB")))
	f.Fuzz(func(t *testing.T, data []byte) {
		z := newConn(nil, bytes.NewReader(data), io.Discard)
		for {
			m, err := z.message(func(c []byte) error {
				_, _ = socketType(flagCommand, c)
				if len(pong(c)) > maxFrame {
					t.Fatal("an answer longer than what was sent")
				}
				return nil
			})
			if err != nil {
				return
			}
			for _, p := range m {
				if len(m) > maxParts || len(p) > maxFrame {
					t.Fatalf("%d frames, one of %d bytes", len(m), len(p))
				}
			}
		}
	})
}
