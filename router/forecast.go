package router

import (
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// foretelling is the forecast of one query, made when it is first asked for. It belongs to the
// decision lock.
type foretelling struct {
	frozen *predictor.Frozen // nil: nothing can be foretold
	batch  predictor.Batch
	done   bool
}

// Forecasts returns what is foretold of the request on every endpoint of the snapshot, candidates or
// not; nil: nothing can be foretold. It is made at the first call.
func (q *Query) Forecasts() []features.Forecast {
	f := q.fore
	if f == nil || f.frozen == nil {
		return nil
	}
	if !f.done {
		b := &f.batch
		b.Size(len(q.Snap.States))
		features.Extract(b.X, b.At, q.Req, q.Snap, q.Hits)
		f.frozen.Predict(b)
		f.done = true
	}
	return f.batch.Fore
}

// Suppose gives the query forecasts made elsewhere, fore[i] for Snap.States[i]: for policies that are
// asked outside a router. nil: nothing can be foretold.
func (q *Query) Suppose(fore []features.Forecast) {
	q.fore = &foretelling{done: true}
	if fore != nil {
		q.fore.frozen, q.fore.batch.Fore = new(predictor.Frozen), fore
	}
}

// Foretold returns the forecasts that the policy asked for, as [Query.Forecasts] does; nil: it did
// without.
func (q *Query) Foretold() []features.Forecast {
	if f := q.fore; f != nil && f.done {
		return f.batch.Fore
	}
	return nil
}

// foretell notes in o what is foretold of the request on the picked endpoint i, and by whom; nothing
// where nothing can be.
func (q *Query) foretell(o *features.Observation, i int) {
	f := q.fore
	if f == nil || f.frozen == nil {
		return
	}
	o.Where = o.X.Take(q.Req, &q.Snap.States[i], q.Snap.At, int(q.Hits[i]))
	o.Schema = schema
	o.Said = f.frozen.Judge(&o.X, &o.Where, &o.Fore)
}

var schema = features.Schema()
