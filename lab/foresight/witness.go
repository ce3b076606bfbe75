package foresight

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// witness teaches the variants and asks them, in one run.
type witness struct {
	pupils  []*pupil
	every   int           // decisions between two that are foreseen
	from    time.Duration // first that counts
	rng     *rand.Rand    // of spoiled labels
	spoiled float64       // share of them

	now       time.Duration
	decisions int
	job       cluster.Job // at hand
	crowds    []crowd     // by endpoint
	fresh     []*follower
	changes   []time.Duration // of engines, that clones do not see
	futures   []Future
	known     []bool
	foreseen  bool
	open      map[key]*record
	cases     []moment
	labels    [][2][]label // by variant and target, uncancelled and unspoiled
	err       error
}

// key names an open request: no two are decided for one endpoint at one nanosecond.
type key struct {
	at       int64
	slot     int32
	instance uint64
}

// record is one open request as the variants saw it at its decision.
type record struct {
	at     time.Duration
	leaves bool
	spoil  float64 // factor on its labels
	views  []view
}

type view struct {
	x    features.Vector
	said features.Said
	fore features.Forecast
}

// moment is one decision that was foreseen.
type moment struct {
	at       time.Duration
	classes  []string     // by endpoint
	futures  []Future     // by endpoint; zero: none
	lived    []*follower  // by endpoint; nil: not followed
	forecast [][]foretold // by variant and endpoint
}

// foretold is what one variant said of one endpoint, in seconds.
type foretold struct {
	First, Decode float64 // what is ranked by: Price.First+KVWait and Price.Decode
	TTFT, ITL     float64 // the blend's P50
}

// livedEvery is how many foreseen decisions there are to one whose clones live on.
const livedEvery = 5

// See implements [cluster.Seer].
func (w *witness) See(now time.Duration, j *cluster.Job, engines []*engine.Engine) {
	for _, p := range w.pupils {
		p.publish()
	}
	w.now, w.job, w.foreseen, w.fresh = now, *j, false, w.fresh[:0]
	for len(w.changes) > 0 && now >= w.changes[0] {
		w.changes, w.crowds = w.changes[1:], nil
	}
	if w.crowds == nil {
		w.crowds = make([]crowd, len(engines))
	}
	w.decisions++
	if now < w.from || w.decisions%w.every != 0 {
		return
	}
	w.foreseen = true
	w.futures, w.known = w.futures[:0], w.known[:0]
	for _, e := range engines {
		f, ok := Foresee(e, now, j)
		w.futures, w.known = append(w.futures, f), append(w.known, ok)
		if w.decisions%(livedEvery*w.every) == 0 {
			f, _ := follow(e, now, j)
			w.fresh = append(w.fresh, f)
		}
	}
}

// Record implements [router.Recorder].
func (w *witness) Record(_ router.ID, q *router.Query, d *router.Decision) {
	w.crowds[d.Index].send(w.now, &w.job)
	for i, f := range w.fresh {
		w.crowds[i] = append(w.crowds[i], f)
	}
	r := &record{at: w.now, leaves: w.job.CancelAfter > 0, spoil: 1, views: make([]view, len(w.pupils))}
	if w.rng.Float64() < w.spoiled {
		r.spoil = math.Pow(10, 2*w.rng.Float64()-1)
	}
	s := &q.Snap.States[d.Index]
	var x features.Vector
	at := x.Take(q.Req, s, q.Snap.At, int(q.Hits[d.Index]))
	for i, p := range w.pupils {
		v := &r.views[i]
		v.x = p.see(&x)
		v.said = p.handle.Load().Judge(&v.x, &at, &v.fore)
	}
	w.open[key{q.Snap.At.UnixNano(), at.Slot, at.Instance}] = r
	if w.foreseen {
		w.ask(q)
	}
}

// ask has every variant foretell the request at hand on every endpoint.
func (w *witness) ask(q *router.Query) {
	n := len(q.Snap.States)
	m := moment{at: w.now, futures: append([]Future(nil), w.futures...), classes: make([]string, n), forecast: make([][]foretold, len(w.pupils))}
	for i := range n {
		m.classes[i] = q.Snap.States[i].GPU
		if !w.known[i] {
			m.futures[i] = Future{}
		}
	}
	if len(w.fresh) > 0 {
		m.lived = append([]*follower(nil), w.fresh...)
	}
	for k, p := range w.pupils {
		b := &p.batch
		b.Size(n)
		features.Extract(b.X, b.At, q.Req, q.Snap, q.Hits)
		for i := range b.X {
			b.X[i] = p.see(&b.X[i])
		}
		p.handle.Load().Predict(b)
		m.forecast[k] = make([]foretold, n)
		for i := range b.Fore {
			f := &b.Fore[i]
			m.forecast[k][i] = foretold{
				First: float64(f.Price.First) + float64(f.Price.KVWait), Decode: float64(f.Price.Decode),
				TTFT: float64(f.TTFT.P50), ITL: float64(f.ITL.P50),
			}
		}
	}
	w.cases = append(w.cases, m)
}

// Tick implements [router.Ticker].
func (w *witness) Tick(_ time.Time, snap *fleet.Snapshot) {
	for _, p := range w.pupils {
		if err := p.tick(snap); err != nil && w.err == nil {
			w.err = err
		}
	}
}

// First implements [router.FirstObserver].
func (w *witness) First(o *features.Observation) { w.teach(o, predictor.TTFT) }

// Observe implements [router.Observer].
func (w *witness) Observe(o *features.Observation) {
	w.teach(o, predictor.ITL)
	delete(w.open, keyOf(o))
}

func keyOf(o *features.Observation) key {
	return key{o.At.UnixNano(), o.Where.Slot, o.Where.Instance}
}

// teach gives every variant the label as if its own forecast had been asked for.
func (w *witness) teach(o *features.Observation, target int) {
	r := w.open[keyOf(o)]
	if r == nil {
		return
	}
	y := o.TTFT.Seconds()
	if target == predictor.ITL {
		y = o.ITL.Seconds()
	}
	for i, p := range w.pupils {
		v := &r.views[i]
		if y > 0 && r.spoil == 1 && !r.leaves {
			fore := &v.fore.TTFT
			if target == predictor.ITL {
				fore = &v.fore.ITL
			}
			w.labels[i][target] = append(w.labels[i][target], label{
				at: r.at, class: o.Where.Class.Value().GPU, error: math.Log(float64(fore.P50) / y), within: y <= float64(fore.P90),
			})
		}
		if p.Deaf && r.leaves {
			continue
		}
		l := *o
		l.X, l.Said, l.Fore = v.x, v.said, v.fore
		l.TTFT = time.Duration(float64(l.TTFT) * r.spoil)
		l.ITL = time.Duration(float64(l.ITL) * r.spoil)
		if target == predictor.TTFT {
			p.First(&l)
		} else {
			p.End(&l)
		}
		p.news = true
	}
}

var (
	_ cluster.Seer         = (*witness)(nil)
	_ router.Recorder      = (*witness)(nil)
	_ router.Ticker        = (*witness)(nil)
	_ router.FirstObserver = (*witness)(nil)
	_ router.Observer      = (*witness)(nil)
)
