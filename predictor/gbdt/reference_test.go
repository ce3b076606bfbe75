package gbdt

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// uniforms are testdata/make.py's: the top 24 bits of SplitMix64.
func uniforms(seed uint64, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed += 0x9E3779B97F4A7C15
		z := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		out[i] = float32((z^z>>31)>>40) / (1 << 24)
	}
	return out
}

// referenceSet is testdata/make.py's function friedman.
func referenceSet(t *testing.T, n int, seed uint64) *Table {
	t.Helper()
	tab := NewTable(6)
	u := uniforms(seed, 18*n)
	for r := range n {
		x := u[18*r : 18*r+18]
		d := make([]float64, 18)
		for i, v := range x {
			d[i] = float64(v)
		}
		y := 10*math.Sin(math.Pi*d[0]*d[1]) + 20*(d[2]-.5)*(d[2]-.5) + 10*d[3] + 5*d[4] - 6
		for _, v := range d[6:] {
			y += v
		}
		if err := tab.Add(x[:6], y, 1); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

// TestTrainsAsWellAsLightGBM: on the rows that testdata/make.py trained LightGBM on, with as many
// trees, the loss on unseen rows is at most 5 % above LightGBM's.
func TestTrainsAsWellAsLightGBM(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]float64
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	train, test := referenceSet(t, 2000, 1), referenceSet(t, 2000, 2)
	for name, p := range map[string]Params{
		"rmse":       {Trees: 100},
		"pinball0.5": {Trees: 100, Quantile: 0.5},
		"pinball0.9": {Trees: 100, Quantile: 0.9},
	} {
		m, err := Train(train, p)
		if err != nil {
			t.Fatal(err)
		}
		var loss float64
		for r, y := range test.y {
			d := y - m.Predict(test.x[6*r:6*r+6])
			switch q := p.Quantile; {
			case q == 0:
				loss += d * d
			case d > 0:
				loss += q * d
			default:
				loss += (q - 1) * d
			}
		}
		loss /= float64(test.Len())
		if p.Quantile == 0 {
			loss = math.Sqrt(loss)
		}
		t.Logf("%s: %.4f, LightGBM %.4f", name, loss, want[name])
		if !(loss <= 1.05*want[name]) {
			t.Errorf("%s: %.4f, more than 5 %% above LightGBM's %.4f", name, loss, want[name])
		}
	}
}
