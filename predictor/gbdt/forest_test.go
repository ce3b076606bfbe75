package gbdt

import (
	"math/rand/v2"
	"testing"
)

// fullForest is of random trees with 2^depth leaves each.
func fullForest(tb testing.TB, trees, depth, dim int) *Forest {
	tb.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	f := &Forest{dim: dim, scale: 1}
	place := make([]int, dim)
	for i := range place {
		place[i] = i
	}
	inner := 1<<depth - 1
	for range trees {
		branches, leaves := make([]branch, inner), make([]float64, inner+1)
		for i := range branches {
			branches[i] = branch{feature: rng.IntN(dim), cut: rng.Float32(), missing: rng.IntN(2) == 0, left: 2*i + 1, right: 2*i + 2}
			if 2*i+1 >= inner {
				branches[i].left, branches[i].right = ^(2*i + 1 - inner), ^(2*i + 2 - inner)
			}
		}
		for i := range leaves {
			leaves[i] = rng.NormFloat64()
		}
		if err := f.plant(0, branches, leaves, place); err != nil {
			tb.Fatal(err)
		}
	}
	if err := f.finish(); err != nil {
		tb.Fatal(err)
	}
	return f
}

func randomRows(n, dim int) [][]float32 {
	rng := rand.New(rand.NewPCG(7, 8))
	rows := make([][]float32, n)
	for r := range rows {
		rows[r] = make([]float32, dim)
		for i := range rows[r] {
			rows[r][i] = rng.Float32()
			if rng.IntN(20) == 0 {
				rows[r][i] = nan()
			}
		}
	}
	return rows
}

// BenchmarkForestColumns is one decision among 100 endpoints with 200 trees of depth 6.
func BenchmarkForestColumns(b *testing.B) {
	f, rows := fullForest(b, 200, 6, 24), randomRows(100, 24)
	var c Columns
	dst := make([]float32, len(rows))
	b.ReportAllocs()
	for b.Loop() {
		c.Fill(len(rows), func(r int) []float32 { return rows[r] })
		f.PredictColumns(dst, &c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
	b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkForestPredict(b *testing.B) {
	f, rows := fullForest(b, 200, 6, 24), randomRows(100, 24)
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range rows {
			f.Predict(x)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}
