package predictor

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/conformal"
	"github.com/presage-router/presage/predictor/gbdt"
	"github.com/presage-router/presage/predictor/ridge"
)

// The members of a blend, in the order of [features.Said].
const (
	memberLaw = iota
	memberPrior
	memberFast
	memberSlow
	memberShort
	memberLong
	memberTrees
	memberRatio
)

// MemberNames are the names of the members, in order.
var MemberNames = [features.Members]string{
	"law", "prior", "ridge-fast", "ridge-slow", "median-30", "median-100", "trees", "trees-ratio",
}

// The targets, in the order of [features.Said].
const (
	TTFT = iota
	ITL
	targets
)

// floors are the least times foretold, in seconds.
var floors = [targets]float64{1e-3, 0.3e-3}

// Frozen is a forecaster as it was when it was published. It is immutable and safe for concurrent
// use. The zero Frozen knows generic priors alone.
type Frozen struct {
	Generation uint64
	classes    []*frozenClass
	slots      []frozenSlot
}

type frozenSlot struct {
	instance uint64
	scale    scale
	context  float64 // mean context of a stream; NaN: not known
}

type frozenClass struct {
	id         fleet.ClassID
	law, prior Law
	flow       flow
	trust      float64 // share of the blocks matched in the index that engines really held
	sigma      float64 // of log errors between endpoints
	targets    [targets]frozenTarget
}

type frozenTarget struct {
	fast, slow  []float64
	short, long float64 // logarithms; NaN: none
	trees       *gbdt.Model
	ratio       *gbdt.Model
	weights     [features.Members]float64
	high        features.Vector // of the loads that the trees saw often
	bands       [conformal.Strata]conformal.Widths
	fallback    bool // unhealthy: the prior speaks alone
}

// Batch is the working memory of forecasts for one decision. The caller fills X and At, of the same
// length; [Frozen.Predict] fills Fore. It belongs to one goroutine.
type Batch struct {
	X    []features.Vector
	At   []features.Where
	Fore []features.Forecast

	cols  gbdt.Columns
	rows  []int32
	done  []bool
	trees [targets * 2][]float32
	bands [targets][conformal.Strata]band // of the class at hand
}

// band is what a median is multiplied by.
type band struct {
	mean     float32
	p90, p99 float64
}

func (tg *frozenTarget) band(stratum int) band {
	w := &tg.bands[stratum]
	return band{mean: w.Mean, p90: math.Exp(float64(w.P90)), p99: math.Exp(float64(w.P99))}
}

// Size makes room for n rows, keeping the memory.
func (b *Batch) Size(n int) {
	if cap(b.X) < n {
		b.X, b.At, b.Fore = make([]features.Vector, n), make([]features.Where, n), make([]features.Forecast, n)
		b.rows, b.done = make([]int32, 0, n), make([]bool, n)
		for i := range b.trees {
			b.trees[i] = make([]float32, n)
		}
	}
	b.X, b.At, b.Fore, b.done = b.X[:n], b.At[:n], b.Fore[:n], b.done[:n]
}

// blank is a class about which nothing was learned.
func blank(id fleet.ClassID, prior Law) *frozenClass {
	c := &frozenClass{id: id, law: prior, prior: prior, flow: flow{answer: firstAnswer}, trust: 1, sigma: firstSigma}
	for t := range c.targets {
		c.targets[t].weights[memberLaw] = 1
		c.targets[t].short, c.targets[t].long = math.NaN(), math.NaN()
		var none conformal.Bands
		for s := range c.targets[t].bands {
			c.targets[t].bands[s] = none.Widths(s)
		}
	}
	return c
}

const (
	firstAnswer = 300.0 // tokens, until answers have ended
	firstSigma  = 0.08
	minVoice    = 0.02 // weight below which a member is not asked
)

var unknownClass = blank(fleet.ClassID{}, GenericLaw())

func (f *Frozen) class(id fleet.ClassID) *frozenClass {
	for _, c := range f.classes {
		if c.id == id {
			return c
		}
	}
	return unknownClass
}

// endpoint is what is known of the endpoint alone: its correction, and what passes through it.
func (f *Frozen) endpoint(at *features.Where, c *frozenClass) (scale, flow) {
	i := int(at.Slot)
	if i < 0 || i >= len(f.slots) || f.slots[i].instance != at.Instance || at.Instance == 0 {
		return unscaled, c.flow
	}
	s, fl := &f.slots[i], c.flow
	if s.context == s.context {
		fl.context = s.context
	}
	return s.scale, fl
}

// Predict sets b.Fore[i] to the forecast for b.X[i] on b.At[i]. It allocates nothing once b has grown.
func (f *Frozen) Predict(b *Batch) {
	clear(b.done)
	for i := range b.X {
		if b.done[i] {
			continue
		}
		c := f.class(b.At[i].Class)
		b.rows = b.rows[:0]
		for j := i; j < len(b.X); j++ {
			if b.At[j].Class == b.At[i].Class {
				b.rows, b.done[j] = append(b.rows, int32(j)), true
			}
		}
		f.predict(b, c)
	}
}

// predict does the rows of one class.
func (f *Frozen) predict(b *Batch, c *frozenClass) {
	filled := false
	for t := range c.targets {
		tg := &c.targets[t]
		for k, m := range [2]*gbdt.Model{tg.trees, tg.ratio} {
			if m == nil || tg.weights[memberTrees+k] < minVoice {
				continue
			}
			if !filled {
				b.cols.Fill(len(b.rows), func(r int) []float32 { return b.X[b.rows[r]][:] })
				filled = true
			}
			m.PredictColumns(b.trees[2*t+k][:len(b.rows)], &b.cols)
		}
	}
	for t := range b.bands {
		for s := range b.bands[t] {
			b.bands[t][s] = c.targets[t].band(s)
		}
	}
	for r, i := range b.rows {
		var leaves [targets * 2]float64
		for k := range leaves {
			leaves[k] = float64(b.trees[k][r])
		}
		stratum := stratumOf(&b.X[i])
		bands := [targets]*band{&b.bands[TTFT][stratum], &b.bands[ITL][stratum]}
		f.one(&b.X[i], &b.At[i], c, &leaves, &bands, &b.Fore[i], nil)
	}
}

// Judge is Predict for one row; every member is asked, and what each said is returned.
func (f *Frozen) Judge(x *features.Vector, at *features.Where, fore *features.Forecast) features.Said {
	c := f.class(at.Class)
	var leaves [targets * 2]float64
	for t := range c.targets {
		for k, m := range [2]*gbdt.Model{c.targets[t].trees, c.targets[t].ratio} {
			if m != nil {
				leaves[2*t+k] = m.Predict(x[:])
			}
		}
	}
	said := features.Nothing()
	stratum := stratumOf(x)
	first, gap := c.targets[TTFT].band(stratum), c.targets[ITL].band(stratum)
	f.one(x, at, c, &leaves, &[targets]*band{&first, &gap}, fore, &said)
	return said
}

func stratumOf(x *features.Vector) int {
	return conformal.Stratum(x.At(features.Pending) + x.At(features.Streams))
}

// one forecasts one row, given what the trees said and the bands; with said, every member is asked.
func (f *Frozen) one(x *features.Vector, at *features.Where, c *frozenClass, leaves *[targets * 2]float64, bands *[targets]*band, fore *features.Forecast, said *features.Said) {
	sc, fl := f.endpoint(at, c)
	w := c.law.read(x, sc, fl)
	hit := x.At(features.Prompt) - w.u
	price := &fore.Price
	first, kv := c.law.first(sc, &w), c.law.wait(sc, &w)
	miss := first
	if hit > 0 && c.trust < 1 {
		v := w
		v.u, v.att = w.u+hit, (w.u+hit)*(w.u+hit)/2
		v.steps = 1.5 + math.Ceil((v.q+v.u)/max(c.law.Budget, 1))
		miss = c.law.first(sc, &v)
		first = c.trust*first + (1-c.trust)*miss
	}
	gap := c.law.gap(sc, &w)
	*price = features.Price{
		First: float32(first), KVWait: float32(kv), Prefill: float32(c.law.prefill(sc, &w)),
		Gap: float32(gap), Decode: float32(c.flow.answer * gap), Sigma: float32(c.sigma),
	}
	laws := [targets]float64{first + kv, gap}
	var priors [targets]float64
	if said != nil || c.targets[TTFT].weights[memberPrior] >= minVoice || c.targets[ITL].weights[memberPrior] >= minVoice {
		v := c.prior.read(x, unscaled, c.flow)
		priors = [targets]float64{c.prior.first(unscaled, &v) + c.prior.wait(unscaled, &v), c.prior.gap(unscaled, &v)}
	}
	for t := range c.targets {
		tg := &c.targets[t]
		var logs [features.Members]float64
		logs[memberLaw] = logOf(laws[t], t)
		logs[memberPrior] = logs[memberLaw]
		if priors[t] > 0 {
			logs[memberPrior] = logOf(priors[t], t)
		}
		tg.members(x, t, leaves, &logs, said != nil)
		mid := tg.blend(&logs)
		if said != nil {
			for m, l := range logs {
				said[t][m] = float32(l)
			}
		}
		p := &fore.TTFT
		if t == ITL {
			p = &fore.ITL
		}
		bands[t].widen(p, mid)
		if t == TTFT && miss > first && 1-c.trust > 0.01 { // the tail of a wrong match
			far := float32(miss + kv)
			p.P99 = max(p.P99, far)
			if 1-c.trust > 0.1 {
				p.P90 = max(p.P90, far)
			}
		}
	}
}

// members fills in what the learned members say; one that cannot speak echoes the slow regression.
func (tg *frozenTarget) members(x *features.Vector, t int, leaves *[targets * 2]float64, logs *[features.Members]float64, all bool) {
	echo := logs[memberLaw]
	if tg.slow != nil {
		var fast, slow float64
		if t == TTFT {
			row := firstRow(x)
			fast, slow = ridge.Dot(row[:], tg.fast), ridge.Dot(row[:], tg.slow)
		} else {
			row := gapRow(x)
			fast, slow = ridge.Dot(row[:], tg.fast), ridge.Dot(row[:], tg.slow)
		}
		logs[memberFast], logs[memberSlow] = logOf(fast/1e3, t), logOf(slow/1e3, t)
		echo = logs[memberSlow]
	} else {
		logs[memberFast], logs[memberSlow] = echo, echo
	}
	logs[memberShort], logs[memberLong], logs[memberTrees], logs[memberRatio] = echo, echo, echo, echo
	if tg.short == tg.short {
		logs[memberShort], logs[memberLong] = tg.short, tg.long
	}
	covered := tg.covers(x)
	if !covered {
		logs[memberTrees], logs[memberRatio] = math.NaN(), math.NaN()
	}
	if tg.trees != nil && covered && (all || tg.weights[memberTrees] >= minVoice) {
		logs[memberTrees] = leaves[2*t]
	}
	if tg.ratio != nil && covered && (all || tg.weights[memberRatio] >= minVoice) {
		logs[memberRatio] = logs[memberSlow] + leaves[2*t+1]
	}
}

// loads are the features whose range tells whether trees can know what comes.
var loads = [...]features.Field{features.Uncached, features.PendingUncached, features.Pending, features.Streams, features.Context, features.Waiting}

// covers reports whether the load is within what the trees saw often enough.
func (tg *frozenTarget) covers(x *features.Vector) bool {
	for _, f := range loads {
		if x[f] > tg.high[f] {
			return false
		}
	}
	return true
}

func (tg *frozenTarget) blend(logs *[features.Members]float64) float64 {
	if tg.fallback {
		return logs[memberPrior]
	}
	sum, total := tg.voices(logs, minVoice)
	if total < 0.5 { // the loud ones are silent here: ask everybody
		sum, total = tg.voices(logs, 0)
	}
	if !(total > 0) {
		return logs[memberSlow]
	}
	return sum / total
}

// voices sums the members with at least that weight.
func (tg *frozenTarget) voices(logs *[features.Members]float64, least float64) (sum, total float64) {
	for m, w := range tg.weights {
		if w >= least && logs[m] == logs[m] {
			sum += w * logs[m]
			total += w
		}
	}
	return sum, total
}

// widen sets the quantiles about a median, given as a logarithm.
func (w *band) widen(p *features.Prediction, mid float64) {
	p50 := math.Exp(mid)
	p.P50 = float32(p50)
	p.Mean = float32(p50) * w.mean
	p.P90 = float32(p50 * w.p90)
	p.P99 = float32(p50 * w.p99)
}

func logOf(seconds float64, t int) float64 { return math.Log(max(seconds, floors[t])) }
