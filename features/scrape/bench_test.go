package scrape

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// serveEnv makes the test binary a server of pages: its CPU time must not count as ours.
const serveEnv = "SCRAPE_TEST_SERVE"

func servePages() {
	n, _ := strconv.Atoi(os.Getenv(serveEnv))
	page, err := os.ReadFile("testdata/vllm_0_32_metrics.txt")
	if err != nil {
		panic(err)
	}
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		addrs = append(addrs, l.Addr().String())
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			w.(http.Flusher).Flush() // chunked, as the engine's ASGI server sends it
			w.Write(page)
		}))
	}
	fmt.Println(strings.Join(addrs, " "))
	os.Stdin.Read(make([]byte, 1)) // until the parent is gone
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkIdle measures the CPU time of scraping idle engines, in a process of its own, over
// loopback: at the adaptive interval and with every endpoint scraped each 200 ms.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{8, 100} {
		for name, slowest := range map[string]time.Duration{"adaptive": 0, "200ms": 200 * time.Millisecond} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				server := exec.Command(os.Args[0])
				server.Env = append(os.Environ(), serveEnv+"="+strconv.Itoa(n))
				in, _ := server.StdinPipe()
				out, _ := server.StdoutPipe()
				if err := server.Start(); err != nil {
					b.Fatal(err)
				}
				defer server.Wait()
				defer in.Close()
				line := make([]byte, 64<<10)
				k, _ := out.Read(line)
				var set []*fleet.Endpoint
				for i, a := range strings.Fields(string(line[:k])) {
					set = append(set, &fleet.Endpoint{Name: "e" + strconv.Itoa(i), Addr: netip.MustParseAddrPort(a), Engine: "vllm", Model: "tiny"})
				}
				var f fleet.Fleet
				if _, err := f.Sync(time.Now(), set); err != nil {
					b.Fatal(err)
				}
				s := &Scraper{Fleet: &f, Slowest: slowest}
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error)
				go func() { done <- s.Run(ctx) }()
				time.Sleep(2 * time.Second)
				before := pages(s)
				c, t := cpuTime(), time.Now()
				for b.Loop() {
					time.Sleep(5 * time.Second)
				}
				used, wall := cpuTime()-c, time.Since(t)
				read := pages(s) - before
				cancel()
				if err := <-done; err != nil || read == 0 {
					b.Fatal(err, read)
				}
				b.ReportMetric(float64(used.Microseconds())/1000/wall.Seconds(), "cpu-ms/s")
				b.ReportMetric(float64(used.Microseconds())/float64(read), "us/page")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func pages(s *Scraper) (n uint64) {
	for _, st := range s.Stats(time.Now(), nil) {
		n += st.Pages
	}
	return n
}
