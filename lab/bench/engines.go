package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// page is what vLLM 0.32 answers on /metrics.
//
//go:embed vllm_0_32_metrics.txt
var page string

// engines are HTTP servers with a metrics page each, and whatever else a bench has them answer.
type engines struct {
	servers []*http.Server
	running sync.WaitGroup
	list    []Endpoint
	pages   atomic.Int64 // read so far
}

// startEngines starts n of them on free ports. answer handles everything but the page; nil: 404.
func startEngines(ctx context.Context, n int, answer http.Handler) (*engines, error) {
	if answer == nil {
		answer = http.NotFoundHandler()
	}
	e := &engines{}
	for i := range n {
		lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			e.stop()
			return nil, fmt.Errorf("engine %d of %d: %w", i+1, n, err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", e.page)
		mux.Handle("/", answer)
		s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		e.servers = append(e.servers, s)
		e.list = append(e.list, Endpoint{Name: fmt.Sprintf("engine-%d", i+1), Addr: lis.Addr().String()})
		e.running.Go(func() {
			if err := s.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				panic(err) // a listener of ours that fails by itself
			}
		})
	}
	return e, nil
}

// page serves the page of a busy engine: requests run, and counters grow from one reading to the next.
func (e *engines) page(w http.ResponseWriter, _ *http.Request) {
	n := e.pages.Add(1)
	text := strings.NewReplacer(
		`vllm:num_requests_running{engine="0",model_name="tiny"} 0.0`, `vllm:num_requests_running{engine="0",model_name="tiny"} 4.0`,
		`vllm:generation_tokens_total{engine="0",model_name="tiny"} `, fmt.Sprintf(`vllm:generation_tokens_total{engine="0",model_name="tiny"} %d`, n),
	).Replace(page)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(text)) // the scraper may have left
}

func (e *engines) stop() {
	for _, s := range e.servers {
		_ = s.Close()
	}
	e.running.Wait()
}
