package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/presage-router/presage/lab/engine"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv("EMULATOR_CLIENTS"); spec != "" {
		if err := clients(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// shared returns the path of a file of the shared data, or skips the test.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PRESAGE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	p := filepath.Join(dir, name)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("shared data not found, set PRESAGE_DATA: %v", err)
	}
	return p
}

func h100(t testing.TB) engine.Config {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.Find("H100", "llama-3.1-8b", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	return engine.Config{Coefs: *c}
}

// start runs an emulator until the test ends. In a synctest bubble the clock is the bubble's.
func start(t testing.TB, cfg Config) *Emulator {
	t.Helper()
	if cfg.Engine.Coefs.GPU == "" {
		coefs := h100(t).Coefs
		cfg.Engine.Coefs = coefs
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

// capture is a client without a network: it notes when what was written.
type capture struct {
	header http.Header
	status int
	mu     sync.Mutex
	body   bytes.Buffer
	at     []time.Time // of each flush with new bytes
	seen   int
	block  chan struct{} // not nil: Write waits for it
	broken bool          // the handler aborted
}

func (c *capture) Header() http.Header { return c.header }

func (c *capture) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
}

func (c *capture) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.block != nil {
		<-c.block
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body.Write(p)
}

func (c *capture) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body.Len() > c.seen {
		c.seen = c.body.Len()
		c.at = append(c.at, time.Now())
	}
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body.String()
}

// call sends a request straight to the handler and waits for its end.
func call(ctx context.Context, e http.Handler, method, path, body string) *capture {
	c := &capture{header: http.Header{}}
	callInto(ctx, e, method, path, body, c)
	return c
}

func callInto(ctx context.Context, e http.Handler, method, path, body string, c *capture) {
	defer func() {
		if err, _ := recover().(error); errors.Is(err, http.ErrAbortHandler) {
			c.broken = true
		}
	}()
	r := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(ctx)
	e.ServeHTTP(c, r)
}

// events returns the data of the server-sent events.
func (c *capture) events(t *testing.T) []string {
	t.Helper()
	var out []string
	for part := range strings.SplitSeq(strings.TrimSuffix(c.String(), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(part, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", part)
		}
		out = append(out, data)
	}
	return out
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type answer struct {
	Choices []struct {
		Text    string `json:"text"`
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Reason string `json:"finish_reason"`
	} `json:"choices"`
	Usage usage `json:"usage"`
}

func (c *capture) answer(t *testing.T) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(c.String()), &a); err != nil || c.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", c.status, err, c.String())
	}
	return a
}
