package predictor

import (
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
)

// mature is a learner whose every member has a say: so much noise that none is better by much.
func mature(tb testing.TB) (*Learner, *world) {
	tb.Helper()
	l, w := NewLearner(Options{}), newWorld(11)
	for range 1024 {
		o := w.next()
		o.Said = l.Freeze().Judge(&o.X, &o.Where, &o.Fore)
		for t, d := range [targets]*time.Duration{&o.TTFT, &o.ITL} {
			*d = time.Duration(math.Exp(float64(o.Said[t][memberLaw])+.6*w.rng.NormFloat64()) * 1e9)
		}
		l.First(o)
		l.End(o)
	}
	for f := l.Due(time.Unix(1e9, 0)); f != nil; f = l.Due(time.Unix(1e9, 0)) {
		f.Run()
		if err := l.Adopt(f); err != nil {
			tb.Fatal(err)
		}
	}
	for range 400 { // the trees must be heard before they are listened to
		o := w.next()
		o.Said = l.Freeze().Judge(&o.X, &o.Where, &o.Fore)
		for t, d := range [targets]*time.Duration{&o.TTFT, &o.ITL} {
			*d = time.Duration(math.Exp(float64(o.Said[t][memberLaw])+.6*w.rng.NormFloat64()) * 1e9)
		}
		l.First(o)
		l.End(o)
	}
	return l, w
}

// voiced are the members that the forecasts of the first class are asked of.
func voiced(f *Frozen) (names []string) {
	for t := range f.classes[0].targets {
		for m, v := range f.classes[0].targets[t].weights {
			if v >= minVoice {
				names = append(names, MemberNames[m])
			}
		}
	}
	return names
}

// hundred is a decision's batch.
func hundred(w *world) *Batch {
	b := new(Batch)
	b.Size(100)
	for i := range b.X {
		o := w.next()
		b.X[i], b.At[i] = o.X, features.Where{Class: w.class, Slot: int32(i), Instance: uint64(i) + 1}
	}
	return b
}

// BenchmarkPredict100 is 100 (TTFT, ITL) pairs with quantiles, of all members.
func BenchmarkPredict100(b *testing.B) {
	l, w := mature(b)
	f, batch := l.Freeze(), hundred(w)
	f.Predict(batch)
	b.Logf("%d voices: %v", len(voiced(f)), voiced(f))
	b.ReportAllocs()
	for b.Loop() {
		f.Predict(batch)
	}
	b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkLearn is what one finished request costs the learner: both labels, and publishing them.
func BenchmarkLearn(b *testing.B) {
	l, w := mature(b)
	var lessons []*features.Observation
	for range 256 {
		o := w.next()
		o.Said = l.Freeze().Judge(&o.X, &o.Where, &o.Fore)
		lessons = append(lessons, o)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		o := lessons[n%len(lessons)]
		l.First(o)
		l.End(o)
		l.Freeze()
		n++
	}
}

// BenchmarkJudge is what the picked endpoint of every decision costs: each member is asked.
func BenchmarkJudge(b *testing.B) {
	l, w := mature(b)
	f, o := l.Freeze(), w.next()
	b.ReportAllocs()
	for b.Loop() {
		f.Judge(&o.X, &o.Where, &o.Fore)
	}
}

// TestPredictDoesNotAllocate once its batch has grown.
func TestPredictDoesNotAllocate(t *testing.T) {
	l, w := mature(t)
	f, b := l.Freeze(), hundred(w)
	f.Predict(b)
	if n := testing.AllocsPerRun(50, func() { f.Predict(b) }); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	voices := voiced(f)
	if len(voices) < 10 {
		t.Errorf("only %v are asked", voices)
	}
}
