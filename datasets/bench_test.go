package datasets

import (
	"strings"
	"testing"
)

func BenchmarkScan(b *testing.B) {
	const rows = 10000
	for _, f := range []Format{Azure, Measured, Mooncake, EPP} {
		head, row, _ := strings.Cut(samples[f], "\n")
		text := head + "\n" + strings.Repeat(strings.SplitAfter(row, "\n")[0], rows)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(f, "bench", strings.NewReader(text), func(*Row) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
