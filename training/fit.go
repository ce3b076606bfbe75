package training

import (
	"context"
	"fmt"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// Options say how to fit.
type Options struct {
	Predictor predictor.Options
	// Champion is the model to beat, with its name and the last record that it learned from: it is
	// judged on later ones alone. nil: there is none.
	Champion      *predictor.State
	ChampionName  string
	ChampionUntil time.Time
	// Continue starts from the champion instead of from the priors alone.
	Continue bool
	// Progress is told now and then how many of how many records are done; nil: nobody is told.
	Progress func(done, of int)
}

// Result is a fitted model and what is known of it.
type Result struct {
	Schema  features.SchemaID `json:"schema"`
	Data    string            `json:"data"` // hash of the records
	Rows    int               `json:"rows"`
	Holdout int               `json:"holdout"` // the last records, on which it was judged
	Since   time.Time         `json:"since"`
	Split   time.Time         `json:"split"` // the first of the judged
	Until   time.Time         `json:"until"`
	Learned map[string]uint64 `json:"learned"` // labels, by kind
	Dropped map[string]uint64 `json:"dropped"` // labels and rows not learned, by reason

	Metrics   map[string]Score            `json:"metrics"`   // by target, on the judged records
	Baselines map[string]map[string]Score `json:"baselines"` // of others on the same: the champion, priors alone
	Gate      Gate                        `json:"gate"`

	State predictor.State `json:"-"` // after all records
}

const (
	judged     = 0.25 // share of the records, the last ones
	leastRows  = 200  // to fit at all
	leastPairs = 50   // to compare with the champion
)

// Fit lets a learner live through the records and judges it on the last quarter. The records are
// scanned twice.
func Fit(ctx context.Context, records *Records, o Options) (*Result, error) {
	r := &Result{Schema: features.Schema(), Baselines: map[string]map[string]Score{}}
	if err := r.survey(ctx, records); err != nil {
		return nil, err
	}
	learner := predictor.NewLearner(o.Predictor)
	if o.Continue && o.Champion != nil {
		if err := learner.Restore(*o.Champion); err != nil {
			return nil, fmt.Errorf("model %s: %w", o.ChampionName, err)
		}
	}
	c := contest{players: []*player{newPlayer("new", learner)}}
	n, split := 0, r.Rows-r.Holdout
	err := records.Scan(func(x *features.Observation) error {
		if n == split {
			r.Split = x.At.UTC()
			c.begin(&o)
		}
		if n >= split && o.Champion != nil && c.players[0].paired == nil && x.At.After(o.ChampionUntil) {
			if err := c.challenge(&o); err != nil {
				return err
			}
		}
		if n++; n%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if o.Progress != nil {
				o.Progress(n, r.Rows)
			}
		}
		return c.request(x)
	})
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return nil, err
	}
	r.conclude(&c, &o, records)
	return r, nil
}

// begin starts the judged part: from now on forecasts count, and those of the priors are made too.
func (c *contest) begin(o *Options) {
	still := newPlayer("prior", predictor.NewLearner(o.Predictor))
	still.still = true
	c.join(still)
	for _, p := range c.players {
		p.scores = new(scores)
	}
}

// challenge lets the champion take part, as it was when it was kept.
func (c *contest) challenge(o *Options) error {
	l := predictor.NewLearner(o.Predictor)
	if err := l.Restore(*o.Champion); err != nil {
		return fmt.Errorf("model %s: %w", o.ChampionName, err)
	}
	p := newPlayer("champion", l)
	p.scores, c.players[0].paired = new(scores), new(scores)
	c.join(p)
	return nil
}

// survey reads the records once, to know what there is.
func (r *Result) survey(ctx context.Context, records *Records) error {
	d := newDigest()
	err := records.Scan(func(o *features.Observation) error {
		if r.Rows == 0 {
			r.Since = o.At.UTC()
		}
		r.Until = o.At.UTC()
		r.Rows++
		d.add(o)
		if r.Rows%1000 == 0 {
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.Rows < leastRows {
		return fmt.Errorf("fit: %d of %d records needed; log for longer, or name more files", r.Rows, leastRows)
	}
	r.Holdout = int(judged * float64(r.Rows))
	r.Data = d.sum()
	return nil
}

func (r *Result) conclude(c *contest, o *Options, records *Records) {
	fresh := c.players[0]
	r.State = fresh.learner.Save()
	r.Metrics = fresh.scores.byTarget()
	n := fresh.learner.Counts
	r.Learned = map[string]uint64{"ttft": n.First, "itl": n.Gap, "censored": n.Censored}
	r.Dropped = map[string]uint64{}
	for why, k := range n.Dropped {
		if k > 0 {
			r.Dropped[predictor.Drop(why).String()] = k
		}
	}
	for why, k := range records.Skipped {
		r.Dropped[why] += uint64(k)
	}
	r.Gate = Gate{Pass: true, Why: "there is no champion yet"}
	if o.Champion != nil {
		r.Gate = Gate{Champion: o.ChampionName}
		r.Gate.Why = fmt.Sprintf("it has learned from the judged records itself, up to %s: give newer ones", o.ChampionUntil.UTC().Format(time.RFC3339))
	}
	for _, p := range c.players[1:] {
		if s := p.scores.byTarget(); len(s) > 0 {
			r.Baselines[p.name] = s
		}
		if p.name == "champion" && p.scores.rows >= leastPairs {
			r.Gate = judge(o.ChampionName, fresh.paired, p.scores)
		}
	}
	if len(r.Metrics) == 0 {
		r.Gate = Gate{Champion: r.Gate.Champion, Why: "no request of the judged part could be foretold and measured"}
	}
}
