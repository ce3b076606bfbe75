package emulator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// reference runs one request on a bare engine and returns when each token is visible.
func reference(t *testing.T, prompt, output int) []time.Duration {
	t.Helper()
	cfg := h100(t)
	cfg.Progress = 1
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Submit(0, &engine.Request{PromptTokens: prompt, OutputTokens: output}); err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		for _, ev := range e.Advance(due) {
			if ev.Kind == engine.FirstToken || ev.Kind == engine.Progress || ev.Kind == engine.Finished {
				at = append(at, ev.At)
			}
		}
	}
	return at
}

// Tokens are written exactly when the engine says, at any speed.
func TestTokensComeWhenTheEngineSays(t *testing.T) {
	const prompt, output = 1000, 20
	want := reference(t, prompt, output)
	if len(want) != output {
		t.Fatalf("the engine told of %d tokens", len(want))
	}
	for _, speed := range []float64{1, 4} {
		t.Run(fmt.Sprint("speed ", speed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := start(t, Config{Speed: speed})
				began := time.Now()
				c := call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"stream":true}`, strings.Repeat("abcd", prompt), output))
				if c.status != http.StatusOK || len(c.at) != output {
					t.Fatalf("status %d, %d writes: %.200s", c.status, len(c.at), c.String())
				}
				for i, at := range c.at {
					got := time.Duration(float64(at.Sub(began)) * speed)
					if off := (got - want[i]).Abs(); off > 8 {
						t.Errorf("token %d came at %v, the engine says %v", i+1, got, want[i])
					}
				}
				if late := e.Lateness(); late.Steps == 0 || late.Max > time.Microsecond {
					t.Errorf("on an exact clock: %+v", late)
				}
			})
		})
	}
}

// A client that does not read stops nobody else, and costs no memory per token.
func TestSlowClientHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		slow := &capture{header: http.Header{}, block: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			callInto(t.Context(), e, "POST", "/v1/completions", `{"prompt":"slow","max_tokens":500,"stream":true}`, slow)
		}()
		synctest.Wait()
		c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"fast","max_tokens":300,"stream":true}`)
		if n := len(c.events(t)); n != 301 {
			t.Errorf("%d events beside a client that does not read", n)
		}
		time.Sleep(time.Minute)
		if open := e.Open(); open != 0 {
			t.Errorf("%d answers still in the engine: it waits for a client", open)
		}
		close(slow.block)
		<-done
		if n := len(slow.events(t)); n != 501 {
			t.Errorf("the slow client got %d events", n)
		}
		if len(slow.at) > 3 {
			t.Errorf("%d writes for what was there at once", len(slow.at))
		}
	})
}

// A client that leaves gives back its KV blocks, from the queue as from the batch.
func TestB31ClientLeavesAndItsKVIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := h100(t)
		cfg.MaxSeqs = 1
		e := start(t, Config{Engine: cfg})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *capture)
		for i := range 2 { // the second waits
			go func() {
				done <- call(ctx, e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":5000,"stream":true}`, strings.Repeat(fmt.Sprint("user", i), 4000)))
			}()
		}
		time.Sleep(time.Second)
		if s := e.Stats(); s.Running != 1 || s.Waiting != 1 || s.KVUsage == 0 || e.Open() != 2 {
			t.Fatalf("before: %+v", s)
		}
		cancel()
		for range 2 {
			if c := <-done; !c.broken {
				t.Error("the handler ended as if the answer were complete")
			}
		}
		if e.Open() != 0 {
			t.Errorf("%d answers open", e.Open())
		}
		time.Sleep(time.Second)
		c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"next","max_tokens":2}`)
		if c.status != http.StatusOK {
			t.Errorf("next request: %d", c.status)
		}
		if s := e.Stats(); s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 || s.Cancelled != 2 {
			t.Errorf("after: %+v", s)
		}
		if len(e.leaving) != 0 || len(e.free) != len(e.streams) {
			t.Errorf("%d leaving, %d of %d slots free", len(e.leaving), len(e.free), len(e.streams))
		}
	})
}

// When the server stops, open answers break off and new ones are refused.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Config{Engine: h100(t)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go e.Run(ctx)
		done := make(chan *capture)
		for _, stream := range []bool{true, false} {
			go func() {
				done <- call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":"x","max_tokens":5000,"stream":%v}`, stream))
			}()
		}
		time.Sleep(time.Second)
		cancel()
		for range 2 {
			if c := <-done; !c.broken {
				t.Errorf("an answer ended with %d", c.status)
			}
		}
		if c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x"}`); c.status != http.StatusServiceUnavailable {
			t.Errorf("after the stop: %d", c.status)
		}
	})
}

// A server is refused connections of no kind while its model loads: it answers 503.
func TestLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Load: time.Minute})
		for range 2 {
			want := http.StatusServiceUnavailable
			if e.loaded() {
				want = http.StatusOK
			}
			if c := call(t.Context(), e, "GET", "/health", ""); max(c.status, http.StatusOK) != want {
				t.Errorf("/health: %d, want %d", c.status, want)
			}
			if c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x"}`); c.status != want {
				t.Errorf("completions: %d, want %d", c.status, want)
			}
			time.Sleep(time.Minute)
		}
	})
}

// More requests than allowed are refused, not kept.
func TestTooManyOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{MaxOpen: 3})
		first := make(chan *capture)
		go func() { first <- call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","n":2}`) }()
		synctest.Wait()
		if c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","n":2}`); c.status != http.StatusServiceUnavailable {
			t.Errorf("beyond the limit: %d", c.status)
		}
		if c := <-first; len(c.answer(t).Choices) != 2 {
			t.Errorf("within the limit: %s", c)
		}
		if c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","n":3}`); c.status != http.StatusOK {
			t.Errorf("afterwards: %d", c.status)
		}
	})
}
