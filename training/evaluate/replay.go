package evaluate

import (
	"context"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// forecasts are those of one target, in the order of the decisions.
type forecasts struct {
	pairs  []pair
	labels []int // pairs in the order in which their labels become known
}

// run makes every forecast in order, learning what has become known in between.
func (c *course) run(ctx context.Context, o predictor.Options) (out [2]forecasts, err error) {
	l := predictor.NewLearner(o)
	frozen := l.Freeze()
	var learned [2]int
	place := [2][]int{make([]int, len(c.examples)), make([]int, len(c.examples))}
	for i := range c.examples {
		if i%256 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		ex := &c.examples[i]
		fresh := false
		for t := range learned {
			for ; learned[t] < ex.known[t]; learned[t]++ {
				teach(l, &c.examples[c.order[t][learned[t]]].obs, t)
				fresh = true
			}
		}
		if fresh {
			frozen = l.Freeze()
		}
		ob := &ex.obs
		ob.Said = frozen.Judge(&ob.X, &ob.Where, &ob.Fore)
		for t, y := range [2]time.Duration{ob.TTFT, ob.ITL} {
			if y <= 0 {
				continue
			}
			place[t][i] = len(out[t].pairs)
			out[t].pairs = append(out[t].pairs, pairOf(ex, t, y.Seconds()))
		}
	}
	for t := range c.order {
		for _, i := range c.order[t] {
			out[t].labels = append(out[t].labels, place[t][i])
		}
	}
	return out, nil
}

func pairOf(ex *example, t int, actual float64) pair {
	ob := &ex.obs
	p := pair{
		p: ob.Fore.TTFT, said: ob.Said[t], actual: actual, x: &ob.X, known: ex.known[t], run: ex.run, at: ex.at,
		inflight: ex.inflight, hit: ob.HitTokens > 0, endpoint: ob.Where.Slot,
	}
	if t == predictor.ITL {
		p.p = ob.Fore.ITL
	}
	return p
}

// teach gives the learner one label and lets it fit trees when these are due.
func teach(l *predictor.Learner, o *features.Observation, t int) {
	if t == predictor.TTFT {
		l.First(o)
	} else {
		l.End(o)
	}
	for fit := l.Due(time.Time{}); fit != nil; fit = l.Due(time.Time{}) {
		fit.Run()
		_ = l.Adopt(fit) // a failed training leaves the trees as they were
	}
}
