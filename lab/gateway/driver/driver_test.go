package driver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/extproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type records chan features.Observation

func (r records) Observe(o *features.Observation) { r <- *o }

// picker runs the service's ext_proc server over the given endpoints.
func picker(t *testing.T, addrs ...string) (addr string, seen records) {
	t.Helper()
	f := new(fleet.Fleet)
	var list []*fleet.Endpoint
	for _, a := range addrs {
		list = append(list, &fleet.Endpoint{Name: a, Addr: netip.MustParseAddrPort(a), TP: 1})
	}
	if _, err := f.Sync(time.Now(), list); err != nil {
		t.Fatal(err)
	}
	policy, err := baseline.Policies().New("round-robin", router.Params{})
	if err != nil {
		t.Fatal(err)
	}
	parser, err := request.NewParser(request.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen = make(records, 64)
	srv, err := extproc.New(extproc.Options{Router: router.New(router.Options{Fleet: f, Policy: policy, Observer: seen}), Parser: parser})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String(), seen
}

// TestExchange: the picker takes an exchange for a complete one, whatever the size of its body.
func TestExchange(t *testing.T) {
	addr, seen := picker(t, "10.0.0.1:8000", "10.0.0.2:8000")
	d, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	answer := []byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
	used := map[string]bool{}
	for _, size := range []int{10, 2000, maxChunk - 100, 3 * maxChunk} {
		body := append([]byte(`{"model":"m","messages":[{"role":"user","content":"`), bytes.Repeat([]byte("x"), size)...)
		x := NewExchange(append(body, `"}]}`...), answer)
		for range 2 {
			r, err := d.Exchange(context.Background(), x)
			if err != nil || r.Decision <= 0 {
				t.Fatalf("%d bytes: %+v, %v", size, r, err)
			}
			used[r.Endpoint] = true
			if o := <-seen; o.Cause != fleet.Complete || o.PromptTokens != 9 || o.Endpoint != r.Endpoint || o.Status != 200 {
				t.Errorf("%d bytes: %+v", size, o)
			}
		}
	}
	if len(used) != 2 {
		t.Errorf("endpoints %v", used)
	}
}

// TestRefused: a picker that answers by itself is an error that says what it said.
func TestRefused(t *testing.T) {
	addr, _ := picker(t)
	d, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = d.Exchange(context.Background(), NewExchange([]byte(`{"model":"m","messages":[]}`), nil))
	if !errors.Is(err, errRefused) {
		t.Errorf("%v", err)
	}
}
