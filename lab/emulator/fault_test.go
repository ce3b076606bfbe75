package emulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func inject(t *testing.T, e *Emulator, body string) {
	t.Helper()
	if c := call(t.Context(), e, "POST", faultPath, body); c.status != http.StatusNoContent {
		t.Fatalf("%s: %d %s", body, c.status, c)
	}
}

// took is how long a short request takes.
func took(t *testing.T, e *Emulator) time.Duration {
	t.Helper()
	began := time.Now()
	call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":10}`).answer(t)
	return time.Since(began)
}

func TestSlowAndStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Speed: 2})
		usual := took(t, e)
		inject(t, e, `{"kind":"slow","factor":3}`)
		if slow := took(t, e); slow < 5*usual/2 || slow > 3*usual {
			t.Errorf("three times slower: %v instead of %v", slow, usual)
		}
		inject(t, e, `{"kind":"slow","factor":1}`)
		inject(t, e, `{"kind":"stall","seconds":30}`)
		if stalled := took(t, e); stalled < 30*time.Second || stalled > 30*time.Second+usual {
			t.Errorf("after a stall: %v", stalled)
		}
		if again := took(t, e); again != usual {
			t.Errorf("afterwards: %v instead of %v", again, usual)
		}
	})
}

func TestFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		inject(t, e, `{"kind":"fail","share":0.25}`)
		failed := 0
		for range 400 {
			if call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":1}`).status == http.StatusInternalServerError {
				failed++
			}
		}
		if failed < 70 || failed > 130 {
			t.Errorf("%d of 400 failed, want about 100", failed)
		}
		inject(t, e, `{"kind":"fail","share":0}`)
		took(t, e)
	})
}

// A killed server breaks its answers off and its connections; back again, it has forgotten its cache.
func TestKillAndRevive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Events: &Events{}})
		prompt := fmt.Sprintf(`{"prompt":%q,"max_tokens":1000,"stream":true}`, strings.Repeat("abcd", 400))
		open := make(chan *capture)
		go func() { open <- call(t.Context(), e, "POST", "/v1/completions", prompt) }()
		time.Sleep(time.Second)
		inject(t, e, `{"kind":"kill"}`)
		if c := <-open; !c.broken || len(c.at) == 0 {
			t.Errorf("an open answer: broken %v, %d writes", c.broken, len(c.at))
		}
		for _, path := range []string{"/health", "/metrics", "/v1/models"} {
			if c := call(t.Context(), e, "GET", path, ""); !c.broken {
				t.Errorf("%s is answered: %d", path, c.status)
			}
		}
		if c := call(t.Context(), e, "POST", "/v1/completions", prompt); !c.broken {
			t.Errorf("a request is answered: %d", c.status)
		}
		inject(t, e, `{"kind":"revive"}`)
		a := call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":1}`, strings.Repeat("abcd", 400))).answer(t)
		if a.Usage.Details.Cached != 0 || e.Open() != 0 {
			t.Errorf("after the restart: %d tokens cached, %d open", a.Usage.Details.Cached, e.Open())
		}
		m := &mirror{blocks: map[uint64][]uint32{}, parent: map[uint64]uint64{}}
		_, batches := e.feed.from(0)
		for _, b := range batches {
			m.apply(t, b)
		}
		if got := m.cached(appendText(nil, strings.Repeat("abcd", 400)), 16); got != 384 || len(m.blocks) != 25 {
			t.Errorf("the events say %d blocks, %d tokens of the prompt: of the new life only", len(m.blocks), got)
		}
	})
}

func TestDropAndTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		open := make(chan *capture)
		go func() { open <- call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":100}`) }()
		time.Sleep(100 * time.Millisecond)
		inject(t, e, `{"kind":"drop"}`)
		if c := call(t.Context(), e, "GET", "/health", ""); !c.broken {
			t.Error("a connection is taken")
		}
		(<-open).answer(t)
		inject(t, e, `{"kind":"take"}`)
		took(t, e)
	})
}

// A blind server serves on, but its page stays as it was.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		page := func() string { return call(t.Context(), e, "GET", "/metrics", "").String() }
		before := page()
		inject(t, e, `{"kind":"blind","seconds":60}`)
		took(t, e)
		if page() != before {
			t.Error("the page changed")
		}
		time.Sleep(time.Minute)
		if after := page(); after == before || !strings.Contains(after, `vllm:generation_tokens_total{engine="0",model_name="llama-3.1-8b"} 10.0`) {
			t.Error("the page did not change after its time")
		}
		before = page()
		inject(t, e, `{"kind":"blind"}`)
		time.Sleep(24 * time.Hour)
		if page() != before {
			t.Error("the page changed")
		}
		inject(t, e, `{"kind":"see"}`)
		if page() == before {
			t.Error("the page stays")
		}
	})
}

func TestImpossibleFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		for _, body := range []string{
			``, `{}`, `{"kind":"explode"}`, `{"kind":"slow"}`, `{"kind":"slow","factor":-1}`, `{"kind":"fail","share":2}`,
			`{"kind":"stall","seconds":-1}`, `{"kind":"stall","seconds":1e300}`, `{"kind":"stall","for":"3s"}`,
		} {
			if c := call(t.Context(), e, "POST", faultPath, body); c.status != http.StatusBadRequest {
				t.Errorf("%s: %d", body, c.status)
			}
		}
		took(t, e)
	})
}
