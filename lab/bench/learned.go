package bench

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

// school is a learner that is taught invented times until every member of its forecasts has a say, as
// after hours of service: the dearest state there is. It is a router.Observer, and learns nothing
// once the lessons are over.
type school struct {
	learner *predictor.Learner
	handle  predictor.Handle
	rng     *rand.Rand
	done    bool
}

// lessons is the number of requests learned; treesAt those at which trees are fitted.
const lessons, treesAt = 1024, 512

// noise of the invented times, the standard deviation of their logarithm: so much that no member is
// better than another by much.
const noise = 0.6

func newSchool() *school {
	return &school{learner: predictor.NewLearner(predictor.Options{}), rng: rand.New(rand.NewPCG(5, 6))}
}

// Observe implements router.Observer.
func (s *school) Observe(o *features.Observation) {
	if s.done || o.Schema == "" {
		return
	}
	lesson := *o
	lesson.TTFT = s.time(o.Said[predictor.TTFT][0])
	lesson.ITL = s.time(o.Said[predictor.ITL][0])
	lesson.Stream, lesson.Cause, lesson.Status = true, fleet.Complete, 200
	s.learner.First(&lesson)
	s.learner.End(&lesson)
	n := s.learner.Counts.First
	if n%treesAt == 0 {
		for f := s.learner.Due(o.At); f != nil; f = s.learner.Due(o.At) {
			f.Run()
			if s.learner.Adopt(f) != nil {
				break
			}
		}
	}
	s.done = n >= lessons
	s.handle.Store(s.learner.Freeze())
}

// time is what was said, with noise.
func (s *school) time(logSeconds float32) time.Duration {
	return time.Duration(math.Exp(float64(logSeconds)+noise*s.rng.NormFloat64()) * float64(time.Second))
}

// voices counts the members that forecasts are asked of, over both times.
func (s *school) voices() (n int) {
	for _, c := range s.learner.Report().Classes {
		for _, t := range c.Targets {
			for _, w := range t.Weights {
				if w >= 0.02 {
					n++
				}
			}
		}
	}
	return n
}

// pairs is how many (TTFT, ITL) forecasts, with quantiles, one core makes in a second, of batches as
// decisions ask for them.
func pairs(f *predictor.Frozen, b *predictor.Batch, length time.Duration) float64 {
	n := 0
	began := time.Now()
	for {
		for range 16 {
			f.Predict(b)
			n += len(b.X)
		}
		if d := time.Since(began); d >= length {
			return float64(n) / d.Seconds()
		}
	}
}
