package predictor

import (
	"fmt"
	"math"
	"slices"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor/conformal"
	"github.com/presage-router/presage/predictor/gbdt"
	"github.com/presage-router/presage/predictor/ridge"
)

// Constants of one target's learners, found on the logged traces named in docs/prediction.md and the
// same for all classes and both targets.
const (
	forgetFast = 0.995
	forgetSlow = 0.999
	noise      = 0.02
	clip       = 0.4

	shortWindow = 30
	longWindow  = 100
	fewLabels   = 20 // until then the law speaks alone

	lossHalf = 200.0 // labels after which an error counts half
	lossCap  = 2.0
	softness = 0.13 // of the choice between members, in relative loss

	treeRows  = 3000
	treeHalf  = 1500.0 // rows after which one counts half
	treeEvery = 150    // labels between two fits
	treeCount = 64
	treeDepth = 4
	coverRows = 20
)

// fading is a mean that forgets.
type fading struct{ sum, weight float64 }

func (f *fading) add(v, keep float64) {
	f.sum = keep*f.sum + (1-keep)*v
	f.weight = keep*f.weight + (1 - keep)
}

func (f *fading) mean() float64 {
	if f.weight == 0 {
		return math.NaN()
	}
	return f.sum / f.weight
}

var lossKeep = math.Pow(0.5, 1/lossHalf)

// target learns one time of one class.
type target struct {
	kind       int
	fast, slow *ridge.Model
	recent     []float64 // the last longWindow labels, a ring, in logarithms
	labels     int
	cut        int // labels before it are of another time: they are not in the medians
	losses     [features.Members]fading
	own        fading // loss of the blend
	bands      conformal.Bands
	fallback   bool

	rows   []row // ring for the trees
	fitted int   // labels at the last fit
	trees  *gbdt.Model
	ratio  *gbdt.Model
	high   features.Vector
}

// row is one labelled request for the trees.
type row struct {
	x    features.Vector
	y    float32 // logarithm of the label
	base float32 // what the slow regression said at the decision, as a logarithm
}

func newTarget(kind int) target {
	priors, floor := firstPriors[:], 10.0
	if kind == ITL {
		priors, floor = gapPriors[:], 3.0
	}
	mean, sd := make([]float64, len(priors)), make([]float64, len(priors))
	for i, p := range priors {
		mean[i], sd[i] = p.mean, p.sd
	}
	model := func(forget float64) *ridge.Model {
		m, err := ridge.New(mean, sd, ridge.Params{Forget: forget, Noise: noise, Clip: clip, Floor: floor})
		if err != nil {
			panic(fmt.Sprintf("predictor: constants: %v", err))
		}
		return m
	}
	return target{kind: kind, fast: model(forgetFast), slow: model(forgetSlow)}
}

// learn takes one label, in seconds, with what was said at the decision.
func (t *target) learn(x *features.Vector, y float64, said *[features.Members]float32, fore *features.Prediction, without *Without) {
	z := math.Log(y)
	t.judge(y, said)
	if fore.Known() {
		t.own.add(min(math.Abs(float64(fore.P50)-y)/y, lossCap), lossKeep)
		p50 := math.Log(float64(fore.P50))
		if !without.Bands {
			t.bands.Learn(conformal.Stratum(x.At(features.Pending)+x.At(features.Streams)), z-p50, conformal.Widths{
				P90: float32(math.Log(float64(fore.P90)) - p50), P99: float32(math.Log(float64(fore.P99)) - p50),
			})
		}
	}
	t.regress(x, y)
	if len(t.recent) < longWindow {
		t.recent = append(t.recent, z)
	} else {
		t.recent[t.labels%longWindow] = z
	}
	r := row{x: *x, y: float32(z), base: said[memberSlow]}
	if r.base == r.base {
		if len(t.rows) < treeRows {
			t.rows = append(t.rows, r)
		} else {
			t.rows[t.labels%treeRows] = r
		}
	}
	t.labels++
	loss, prior := t.own.mean(), t.losses[memberPrior].mean()
	t.fallback = t.labels >= 200 && !(loss <= unhealthy*max(prior, 0.05))
}

// unhealthy is how many times the error of the frozen prior makes the blend give way to it.
const unhealthy = 1.5

func (t *target) regress(x *features.Vector, y float64) {
	if t.kind == TTFT {
		row := firstRow(x)
		t.fast.Learn(row[:], 1e3*y)
		t.slow.Learn(row[:], 1e3*y)
		return
	}
	row := gapRow(x)
	t.fast.Learn(row[:], 1e3*y)
	t.slow.Learn(row[:], 1e3*y)
}

// judge notes how wrong each member was.
func (t *target) judge(y float64, said *[features.Members]float32) {
	for m, l := range said {
		if l == l {
			t.losses[m].add(min(math.Abs(math.Exp(float64(l))-y)/y, lossCap), lossKeep)
		}
	}
}

// weights are the voices of the members: the best one's loss sets the scale.
func (t *target) weights() (w [features.Members]float64) {
	best := math.Inf(1)
	for m := range t.losses {
		if l := t.losses[m].mean(); l < best {
			best = l
		}
	}
	if t.labels < fewLabels || math.IsInf(best, 1) {
		w[memberLaw] = 1
		return w
	}
	best = max(best, 1e-3)
	var sum float64
	for m := range w {
		if l := t.losses[m].mean(); l == l {
			w[m] = math.Exp(-(l/best - 1) / softness)
			sum += w[m]
		}
	}
	for m := range w {
		w[m] /= sum
	}
	return w
}

// medians of the last labels, as logarithms.
func (t *target) medians() (short, long float64) {
	size := len(t.recent)
	n := min(size, t.labels-t.cut)
	if n < fewLabels {
		return math.NaN(), math.NaN()
	}
	var last [longWindow]float64 // the newest first
	newest := size - 1
	if size == longWindow {
		newest = (t.labels - 1) % longWindow
	}
	for i := range n {
		last[i] = t.recent[(newest-i+size)%size]
	}
	recent := last
	return middle(recent[:min(n, shortWindow)]), middle(last[:n])
}

func middle(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// due reports whether enough labels came since the trees were fitted.
func (t *target) due() bool { return len(t.rows) >= treeEvery && t.labels-t.fitted >= treeEvery }

// fit trains both tree models on the rows kept.
func fit(rows []row, labels int) (trees, ratio *gbdt.Model, high features.Vector, err error) {
	plain, rel := gbdt.NewTable(int(features.Dim)), gbdt.NewTable(int(features.Dim))
	n := len(rows)
	for k := range n {
		r := &rows[(labels+k)%n] // oldest first where the ring is full
		if n < treeRows {
			r = &rows[k]
		}
		weight := math.Pow(0.5, float64(n-1-k)/treeHalf)
		if err = plain.Add(r.x[:], float64(r.y), weight); err == nil {
			err = rel.Add(r.x[:], float64(r.y-r.base), weight)
		}
		if err != nil {
			return nil, nil, high, err
		}
	}
	for _, f := range loads {
		high[f] = seenOften(rows, f)
	}
	p := gbdt.Params{Trees: treeCount, Depth: treeDepth, Quantile: 0.5}
	if trees, err = gbdt.Train(plain, p); err == nil {
		ratio, err = gbdt.Train(rel, p)
	}
	return trees, ratio, high, err
}

// seenOften is the value that coverRows rows reach or exceed: beyond it there is too little to learn
// from, and trees do not extrapolate.
func seenOften(rows []row, f features.Field) float32 {
	v := make([]float32, 0, len(rows))
	for i := range rows {
		if x := rows[i].x[f]; x == x {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[max(0, len(v)-coverRows)]
}

func (t *target) freeze(f *frozenTarget) {
	f.fast, f.slow = slices.Clone(t.fast.Theta()), slices.Clone(t.slow.Theta())
	f.short, f.long = t.medians()
	f.trees, f.ratio, f.high = t.trees, t.ratio, t.high
	f.weights = t.weights()
	f.fallback = t.fallback
	for s := range f.bands {
		f.bands[s] = t.bands.Widths(s)
	}
}
