package evaluate

import (
	"context"
	"math"
	"slices"

	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/training/baseline"
)

// Rivals are scores of others for one target, by name: the members of the blend, and the models of
// package baseline.
type Rivals map[string]Point

// Against compares the blend with its members over the counted forecasts.
type Against struct {
	Best      string  `json:"best_member"` // of least MAPE, known only in hindsight
	BestRatio float64 `json:"best_ratio"`  // MAPE of the blend over its
	LawRatio  float64 `json:"law_ratio"`   // MAPE of the blend over that of the physical law
}

// member is what one member said of each request, in seconds; where it was silent, the slow
// regression speaks for it, as in the blend.
func member(pairs []pair, m int) (said []float64, silent int) {
	slow := slices.Index(predictor.MemberNames[:], "ridge-slow")
	said = make([]float64, len(pairs))
	for i := range pairs {
		q := &pairs[i]
		v := expOf(q.said[m])
		if !(v > 0) {
			silent++
			v = expOf(q.said[slow])
		}
		said[i] = v
	}
	return said, silent
}

func members(pairs []pair) Rivals {
	r := Rivals{}
	for m, name := range predictor.MemberNames {
		said, silent := member(pairs, m)
		s := points(said, pairs)
		s.Silent = silent
		r[name] = s
	}
	return r
}

func against(pairs []pair) Against {
	a := Against{}
	mape, best := score(pairs).MAPE, math.Inf(1)
	for m, name := range predictor.MemberNames {
		said, _ := member(pairs, m)
		v := points(said, pairs).MAPE
		if v < best {
			a.Best, best = name, v
		}
		if name == "law" {
			a.LawRatio = ratio(mape, v)
		}
	}
	a.BestRatio = ratio(mape, best)
	return a
}

// ratio of two errors, 1 where both are nil.
func ratio(a, b float64) float64 {
	const least = 1e-9
	return max(a, least) / max(b, least)
}

// foils trains the models of package baseline as labels become known and scores them from skip on.
func (fc *forecasts) foils(ctx context.Context, skip int, into Rivals) error {
	for name, model := range baseline.All() {
		said, err := fc.foil(ctx, model)
		if err != nil {
			return err
		}
		into[name] = points(said[skip:], fc.pairs[skip:])
	}
	return nil
}

// foil forecasts with one model, refitted after so many labels on the last of them.
func (fc *forecasts) foil(ctx context.Context, model baseline.Model) ([]float64, error) {
	said := make([]float64, len(fc.pairs))
	rows := make([]baseline.Row, len(fc.labels))
	for k, i := range fc.labels {
		rows[k] = baseline.Row{X: fc.pairs[i].x, Y: fc.pairs[i].actual}
	}
	fitted := 0
	for i := range fc.pairs {
		p := &fc.pairs[i]
		if p.known-fitted >= baseline.Every && p.known >= baseline.Least {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := model.Fit(rows[max(0, p.known-baseline.Rows):p.known]); err != nil {
				return nil, err
			}
			fitted = p.known
		}
		switch {
		case fitted > 0:
			said[i] = model.Predict(p.x)
		case p.known > 0:
			said[i] = rows[p.known-1].Y // the last known, until there is enough to fit
		default:
			said[i] = float64(p.p.P50)
		}
	}
	return said, nil
}
