package training

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/training/evaluate"
)

// Gate is the judgement between a new model and the champion on the same requests. Gains are shares
// of the champion's pinball loss that the new model saves.
type Gate struct {
	Champion string             `json:"champion,omitempty"` // empty: there is none
	Gain     float64            `json:"gain"`               // mean over the targets
	CI95     [2]float64         `json:"ci95"`
	Targets  map[string]float64 `json:"targets,omitempty"`
	Pass     bool               `json:"pass"`
	Why      string             `json:"why"`
}

const (
	leastGain = 0.02 // to be worth a change
	mostLoss  = 0.02 // of one target, for the sake of the other
	resamples = 2000
	mostParts = 1000
)

// judge compares losses over blocks of consecutive requests, since neighbours err alike.
func judge(champion string, fresh, old *scores) Gate {
	g := Gate{Champion: champion, Targets: map[string]float64{}}
	parts := min(mostParts, max(1, fresh.rows/5))
	var a, b [][]float64
	for t, name := range evaluate.TargetNames {
		if len(fresh.targets[t].loss) == 0 || len(old.targets[t].loss) == 0 {
			continue
		}
		x, y := fresh.targets[t].chunks(parts, fresh.rows), old.targets[t].chunks(parts, old.rows)
		a, b = append(a, x), append(b, y)
		all := make([]int, parts)
		for i := range all {
			all[i] = i
		}
		g.Targets[name] = 1 - sumOf(x, all)/sumOf(y, all)
	}
	if len(a) == 0 {
		g.Why = "no request was foretold by both"
		return g
	}
	block := int(math.Ceil(math.Cbrt(float64(parts)))) // the usual order of length
	ci := stat.BlockBootstrap(parts, block, resamples, 0.95, rand.New(rand.NewPCG(1, 2)), func(index []int) float64 {
		var gain float64
		for k := range a {
			gain += 1 - sumOf(a[k], index)/sumOf(b[k], index)
		}
		return gain / float64(len(a))
	})
	g.Gain, g.CI95 = ci.Mean, [2]float64{ci.Low, ci.High}
	g.decide()
	return g
}

func (g *Gate) decide() {
	for name, gain := range g.Targets {
		if !(gain >= -mostLoss) {
			g.Why = fmt.Sprintf("%s is worse by %.1f %%", name, -100*gain)
			return
		}
	}
	switch {
	case !(g.Gain >= leastGain):
		g.Why = fmt.Sprintf("better by %.1f %%, which is less than the %.0f %% that a change needs", 100*g.Gain, 100*leastGain)
	case !(g.CI95[0] > 0):
		g.Why = fmt.Sprintf("better by %.1f %%, but with a 95 %% interval from %.1f to %.1f %% it may be chance", 100*g.Gain, 100*g.CI95[0], 100*g.CI95[1])
	default:
		g.Pass = true
		g.Why = fmt.Sprintf("better by %.1f %% (95 %% interval %.1f to %.1f)", 100*g.Gain, 100*g.CI95[0], 100*g.CI95[1])
	}
}
