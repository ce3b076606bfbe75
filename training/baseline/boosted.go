package baseline

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor/gbdt"
)

// Boosted is gradient-boosted trees of the logarithm of the time: 200 of depth 6, squared loss, the
// size that llm-d's predictor uses.
type Boosted struct{ model *gbdt.Model }

// Fit implements [Model].
func (b *Boosted) Fit(rows []Row) error {
	t := gbdt.NewTable(int(features.Dim))
	for _, r := range rows {
		if err := t.Add(r.X[:], math.Log(r.Y), 1); err != nil {
			return err
		}
	}
	m, err := gbdt.Train(t, gbdt.Params{Trees: 200, Depth: 6, Rate: 0.05, MinWeight: 5})
	if err == nil {
		b.model = m
	}
	return err
}

// Predict implements [Model].
func (b *Boosted) Predict(x *features.Vector) float64 {
	return bounded(math.Exp(b.model.Predict(x[:])))
}

var _ Model = (*Boosted)(nil)
