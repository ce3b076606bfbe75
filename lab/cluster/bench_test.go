package cluster

import (
	"syscall"
	"testing"
	"time"
)

// cpu is the time the process has computed: on a shared machine the wall clock measures the others.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// peak is the most memory the process has had, in bytes.
func peak() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return float64(r.Maxrss) * 1024
}

// BenchmarkRequests is the simulator's speed on its workload; see [Speed].
func BenchmarkRequests(b *testing.B) {
	for name, single := range map[string]bool{"macro": false, "token": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpu()
			rep, err := Speed(b.N, 1, single)
			if err != nil {
				b.Fatal(err)
			}
			took := cpu() - start
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(b.N)/took.Seconds(), "requests/cpu-s")
			b.ReportMetric(float64(rep.Events)/took.Seconds(), "events/cpu-s")
		})
	}
}
