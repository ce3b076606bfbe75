package gbdt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Columns of any kind of value, in batches of any size, forecast what rows do: negative values and cuts
// too, zeros of both signs, infinities, missing values on either side.
func TestColumnsOfAnyValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	inf := float32(math.Inf(1))
	special := []float32{0, float32(math.Copysign(0, -1)), inf, float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32, 1, 2}
	value := func(negative bool) float32 {
		v := special[rng.IntN(len(special))]
		if rng.IntN(2) == 0 {
			v = float32(rng.IntN(5))
		}
		if negative && rng.IntN(2) == 0 {
			v = -v
		}
		return v
	}
	const dim = 3
	var cols Columns
	for trial := range 3000 {
		negative := trial%2 == 0
		m := &Model{dim: dim, base: rng.Float64()}
		for range 1 + rng.IntN(4) {
			depth := 4
			if rng.IntN(4) == 0 {
				depth = 1 + rng.IntN(6)
			}
			tr := tree{}
			for range depth {
				cut := value(rng.IntN(2) == 0)
				for cut != cut {
					cut = value(true)
				}
				tr.levels = append(tr.levels, level{feature: rng.IntN(dim), cut: cut, missing: rng.IntN(2) == 0, key: int64(order(cut))})
			}
			for range 1 << depth {
				tr.leaves = append(tr.leaves, rng.Float32())
			}
			m.trees = append(m.trees, tr)
		}
		rows := make([][]float32, 1+rng.IntN(9))
		for r := range rows {
			for range dim {
				rows[r] = append(rows[r], value(negative))
			}
		}
		cols.Fill(len(rows), func(r int) []float32 { return rows[r] })
		dst := make([]float32, len(rows))
		m.PredictColumns(dst, &cols)
		for r, x := range rows {
			if want := m.Predict(x); math.Abs(float64(dst[r])-want) > 1e-5 {
				t.Fatalf("row %v of %d: %v in columns, %v by itself; trees %+v", x, len(rows), dst[r], want, m.trees)
			}
		}
	}
}
