package emulator

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkStreams serves 8 engines with 250 streams each over real connections and reports how
// late steps begin once all streams run. The clients are a process of their own. For the figure of
// one core:
//
//	go test -c && EMULATOR_CLIENT_CPUS=1 taskset -c 0 ./emulator.test -test.run '^$' -test.bench Streams
func BenchmarkStreams(b *testing.B) {
	const engines, streams, tokens = 8, 250, 512
	for b.Loop() {
		emulators := make([]*Emulator, engines)
		addrs := make([]string, engines)
		for i := range emulators {
			emulators[i] = start(b, Config{})
			server := httptest.NewServer(emulators[i])
			defer server.Close()
			addrs[i] = server.Listener.Addr().String()
		}
		clients := exec.CommandContext(b.Context(), os.Args[0])
		if cpus := os.Getenv("EMULATOR_CLIENT_CPUS"); cpus != "" {
			clients = exec.CommandContext(b.Context(), "taskset", "-c", cpus, os.Args[0])
		}
		clients.Env = append(os.Environ(), fmt.Sprintf("EMULATOR_CLIENTS=%d %d %s", streams, tokens, strings.Join(addrs, " ")))
		clients.Stderr = os.Stderr
		if err := clients.Start(); err != nil {
			b.Fatal(err)
		}
		for _, e := range emulators {
			for e.Stats().Submitted < streams {
				time.Sleep(10 * time.Millisecond)
			}
		}
		var began [engines]uint64
		for i, e := range emulators {
			e.mu.Lock()
			e.lateness = lateness{}
			began[i] = e.stats.GenerationTokens
			e.mu.Unlock()
		}
		from := time.Now()
		var done uint64
		var p50, p99 time.Duration
		for _, e := range emulators {
			for e.Stats().Completed == 0 { // until the first leave
				time.Sleep(10 * time.Millisecond)
			}
		}
		for i, e := range emulators {
			done += e.Stats().GenerationTokens - began[i]
			late := e.Lateness()
			p50, p99 = max(p50, late.P50), max(p99, late.P99)
		}
		b.ReportMetric(float64(done)/time.Since(from).Seconds(), "tokens/s")
		b.ReportMetric(p50.Seconds()*1e3, "late-p50-ms")
		b.ReportMetric(p99.Seconds()*1e3, "late-p99-ms")
		if err := clients.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// clients is the benchmark's other process.
func clients(spec string) error {
	fields := strings.Fields(spec)
	streams, _ := strconv.Atoi(fields[0])
	tokens, _ := strconv.Atoi(fields[1])
	addrs := fields[2:]
	failed := make(chan error, streams*len(addrs))
	var wg sync.WaitGroup
	for i := range streams * len(addrs) {
		wg.Go(func() {
			if err := drain(addrs[i%len(addrs)], i, tokens); err != nil {
				failed <- err
			}
		})
		time.Sleep(200 * time.Microsecond)
	}
	wg.Wait()
	close(failed)
	return <-failed
}

// drain reads one stream with as little work as a client can do.
func drain(addr string, i, tokens int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := fmt.Sprintf(`{"prompt":"user %d %s","max_tokens":%d,"stream":true}`, i, strings.Repeat("x", 100), tokens)
	if _, err := fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, conn)
	if err == nil && n < int64(tokens*100) {
		err = fmt.Errorf("stream %d: %d bytes", i, n)
	}
	return err
}

// BenchmarkPage is one scrape.
func BenchmarkPage(b *testing.B) {
	e := start(b, Config{})
	for b.Loop() {
		if w := httptest.NewRecorder(); w.Body.Len() == 0 {
			e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}
	}
}
