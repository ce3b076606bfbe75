package engine

import (
	"testing"
	"time"
)

// BenchmarkRequests is the cost of one request of 512 prompt and 256 answer tokens, unshared, at 25
// requests a second: about 60 run at a time.
func BenchmarkRequests(b *testing.B) {
	for _, mode := range []struct {
		name   string
		change func(*Config)
	}{
		{"macro", func(*Config) {}},
		{"token", func(c *Config) { c.SingleStep = true }},
		{"progress16", func(c *Config) { c.Progress = 16 }},
		{"live", func(c *Config) { c.Progress = 1; c.KVEvents = true }},
	} {
		b.Run(mode.name, func(b *testing.B) {
			e := h100(b, mode.change)
			r := Request{PromptTokens: 512, OutputTokens: 256}
			const ring = 4096
			chains := make([]uint64, ring*48)
			for i := range chains {
				chains[i] = uint64(i+1) * 0x9e3779b97f4a7c15
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				at := time.Duration(i) * 40 * time.Millisecond
				for due, ok := e.Next(); ok && due < at; due, ok = e.Next() {
					e.Advance(due)
				}
				k := i % ring * 48
				r.ID, r.Blocks = uint64(i), chains[k:k+48:k+48]
				if _, err := e.Submit(at, &r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64(e.stats.Steps)/float64(b.N), "steps/request")
		})
	}
}
