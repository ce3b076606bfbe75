package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/cluster"
)

const (
	maxReplay = 2_000_000 // rows of one replay
	pastEnd   = 100_000   // rows in a row beyond the part wanted, after which reading stops
)

// replay opens the trace of a class.
func (s *Scenario) replay(t *Traffic, until time.Duration, o Options) (cluster.Source, error) {
	path := cmp.Or(t.Trace.File, o.Trace)
	if path == "" {
		return nil, fmt.Errorf("%s: %s: replays a trace that is not shipped: give its file with --trace FILE%s", s.Name, t.Class, t.Trace.hint())
	}
	format, err := datasets.Detect(path)
	if err != nil {
		return nil, err
	}
	if want := t.Trace.Format; want != "" && want != format {
		return nil, fmt.Errorf("%s: is a file of format %s: scenario %s replays %s%s", path, format, s.Name, want, t.Trace.hint())
	}
	if format == datasets.ServeGenRates {
		return newServeGen(t, path, until, o)
	}
	rows, err := t.Trace.rows(path, format)
	if err != nil {
		return nil, err
	}
	r := &replay{t: t, seed: o.Seed, talks: map[string]*transcript{}, hidden: map[uint64]int{}}
	if err := r.place(path, rows, until, o); err != nil {
		return nil, err
	}
	return r, nil
}

func (t *Trace) hint() string {
	if t.Where == "" {
		return ""
	}
	return " (" + t.Where + ")"
}

// rows reads the wanted part of a file.
func (t *Trace) rows(path string, format datasets.Format) ([]datasets.Row, error) {
	first, err := t.first(path, format)
	if err != nil {
		return nil, err
	}
	var rows []datasets.Row
	var runs []string
	err = t.scan(path, format, &first, func(r *datasets.Row) error {
		if datasets.Known(r.Arrival) && !t.inPart(r.Arrival-first) {
			return nil
		}
		if !slices.Contains(runs, r.Run) {
			runs = append(runs, r.Run)
		}
		rows = append(rows, *r)
		if len(rows) > maxReplay {
			return fmt.Errorf("%s: more than %d requests: choose a part with start and length", path, maxReplay)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, fmt.Errorf("%s: no request in the part replayed (start %s, length %s, run %q)", path, t.From, t.Length, t.Run)
	case len(runs) > 1:
		return nil, fmt.Errorf("%s: holds %d runs; choose one with run: %q, %q, …", path, len(runs), runs[0], runs[1])
	}
	return rows, nil
}

// inPart reports whether a time on the trace's clock is in the part wanted.
func (t *Trace) inPart(at float64) bool {
	return at >= t.From.Seconds() && (t.Length == 0 || at < (t.From+t.Length).Seconds())
}

// first is the earliest arrival, which in a file out of order is not that of its first row. It
// matters, and is looked for, only if a part of the trace is wanted.
func (t *Trace) first(path string, format datasets.Format) (float64, error) {
	if t.From == 0 && t.Length == 0 {
		return math.Inf(-1), nil
	}
	first := math.Inf(1)
	err := t.scan(path, format, &first, func(r *datasets.Row) error {
		if datasets.Known(r.Arrival) {
			first = min(first, r.Arrival)
		}
		return nil
	})
	return first, err
}

// scan reads the rows that can be requests of the replay, up to some way behind the end of the part
// wanted, counted from first.
func (t *Trace) scan(path string, format datasets.Format, first *float64, each func(*datasets.Row) error) error {
	past, enough := 0, errors.New("enough")
	_, err := datasets.ScanAs(format, path, func(r *datasets.Row) error {
		if t.Run != "" && r.Run != t.Run || format == datasets.EPP && !datasets.Known(r.TTFT) {
			return nil // a request of EPP records has a row for its TTFT and one for its TPOT
		}
		past++
		if !(t.Length > 0 && r.Arrival-*first >= (t.From+t.Length).Seconds()) {
			past = 0
		}
		if past > pastEnd {
			return enough
		}
		return each(r)
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// replay yields the requests of recorded rows.
type replay struct {
	t      *Traffic
	seed   uint64
	rows   []placed
	talks  map[string]*transcript // by session
	hidden map[uint64]int         // tokens before the first message, by tools and first message
	next   int
}

// placed is a row with its time in the run and its lengths settled.
type placed struct {
	row            datasets.Row
	at             time.Duration
	prompt, output int
	number         int
	later          []placed // of the same session, when sessions wait
}

// place gives each row its time and drops what cannot be replayed.
func (r *replay) place(path string, rows []datasets.Row, until time.Duration, o Options) error {
	tr := r.t.Trace
	outputs := stream(o.Seed, r.t.Class, "output")
	noOutput := 0
	for i := range rows {
		p := placed{row: rows[i], prompt: rows[i].Prompt, output: rows[i].Output, number: i}
		if p.output <= 0 && !tr.Output.IsZero() {
			p.output = tr.Output.Tokens(outputs)
		}
		switch {
		case p.prompt <= 0:
		case p.output <= 0:
			noOutput++
		default:
			p.output = r.t.capped(p.output)
			r.rows = append(r.rows, p)
		}
	}
	if len(r.rows) == 0 {
		if noOutput > 0 {
			return fmt.Errorf("%s: no request says how long its answer was: give the scenario's trace an output distribution", path)
		}
		return fmt.Errorf("%s: no request says how long its prompt was: it cannot be replayed", path)
	}
	if err := r.clock(path, o); err != nil {
		return err
	}
	if n := len(r.rows) * max(1, tr.Copies); n > maxReplay {
		return fmt.Errorf("%s: %d copies make %d requests; at most %d: take fewer, or a part with start and length", path, tr.Copies, n, maxReplay)
	}
	r.multiply(tr.Copies, stream(o.Seed, r.t.Class, "copies"))
	if tr.Waits {
		r.chainSessions()
	}
	r.rows = slices.DeleteFunc(r.rows, func(p placed) bool { return p.at >= until-r.t.From })
	for i := range r.rows {
		r.rows[i].at += r.t.From
	}
	return nil
}

// clock turns recorded arrivals into times of the run, or draws them where there are none.
func (r *replay) clock(path string, o Options) error {
	tr := r.t.Trace
	if slices.ContainsFunc(r.rows, func(p placed) bool { return !datasets.Known(p.row.Arrival) }) {
		if tr.Rate == 0 {
			return fmt.Errorf("%s: its requests have no arrival times: give the scenario's trace a rate, for Poisson arrivals in the file's order", path)
		}
		at, rng := 0.0, stream(o.Seed, r.t.Class, "arrivals")
		for i := range r.rows {
			at += rng.ExpFloat64() / (tr.Rate * o.Load)
			r.rows[i].at = seconds(at)
		}
		return nil
	}
	slices.SortStableFunc(r.rows, func(a, b placed) int { return cmp.Compare(a.row.Arrival, b.row.Arrival) })
	first, last := r.rows[0].row.Arrival, r.rows[len(r.rows)-1].row.Arrival
	speed := cmp.Or(tr.Speed, 1)
	if tr.Rate > 0 && last > first {
		speed = tr.Rate * (last - first) / float64(len(r.rows)-1)
	}
	speed *= o.Load
	begin, around := 0.0, last-first
	if tr.Anywhere && len(r.rows) > 1 {
		around += (last - first) / float64(len(r.rows)-1) // a mean gap between the end and the beginning
		begin = around * stream(o.Seed, r.t.Class, "beginning").Float64()
	}
	for i := range r.rows {
		at := r.rows[i].row.Arrival - first - begin
		if at < 0 {
			at += around
		}
		r.rows[i].at = seconds(at / speed)
	}
	slices.SortStableFunc(r.rows, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	return nil
}

// chainSessions hangs the later requests of each session behind its first.
func (r *replay) chainSessions() {
	first := map[string]int{}
	kept := r.rows[:0]
	for _, p := range r.rows {
		i, seen := first[p.row.Session]
		if p.row.Session == "" || !seen {
			first[p.row.Session] = len(kept)
			kept = append(kept, p)
			continue
		}
		kept[i].later = append(kept[i].later, p)
	}
	r.rows = kept
}

// Next yields the next request of the trace.
func (r *replay) Next(j *cluster.Job) bool {
	if r.next == len(r.rows) {
		return false
	}
	p := &r.rows[r.next]
	r.next++
	talk := r.talk(p)
	r.fill(j, p, talk)
	j.At = p.at
	if len(p.later) > 0 {
		j.Then = &recorded{r: r, talk: talk, left: p.later, last: p.row}
	}
	return true
}

func (r *replay) fill(j *cluster.Job, p *placed, talk *transcript) {
	r.t.label(j)
	j.Session, j.PromptTokens, j.OutputTokens = p.row.Session, p.prompt, p.output
	j.Blocks = talk.request(r, p)
}

// recorded yields the later requests of a session that waits for its answers.
type recorded struct {
	r    *replay
	talk *transcript
	left []placed
	last datasets.Row
}

// Next yields the session's next request after the recorded gap, less what the answer took then.
func (s *recorded) Next(j *cluster.Job) bool {
	if len(s.left) == 0 {
		return false
	}
	p := &s.left[0]
	s.left = s.left[1:]
	gap := p.row.Arrival - s.last.Arrival
	if datasets.Known(s.last.E2E) {
		gap -= s.last.E2E
	}
	s.last = p.row
	s.r.fill(j, p, s.talk)
	if datasets.Known(gap) {
		j.At = seconds(gap)
	}
	return true
}

var (
	_ cluster.Source = (*replay)(nil)
	_ cluster.Source = (*recorded)(nil)
)
