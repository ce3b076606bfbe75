package trace

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unique"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// rowVersion is that of the written form. A change of the fields is a new version; rows of version 1,
// which end before the session, are read too.
const rowVersion = 2

// What a row cannot be read for; callers count by it.
var (
	errVersion = errors.New("other version")
	errSchema  = errors.New("other schema")
)

// appendRow appends the written form of o. A record with a value that no reader would accept is an
// error that names the field; dst is returned unchanged then.
func appendRow(dst []byte, o *features.Observation) ([]byte, error) {
	c := codec{buf: append(dst, rowVersion)}
	if o.Schema != "" && o.Schema != schema {
		return dst, fmt.Errorf("schema %q: this program writes %q: %w", o.Schema, schema, errSchema)
	}
	row(&c, o)
	trial(&c, o)
	if c.err != nil {
		return dst, c.err
	}
	return c.buf, nil
}

// parseRow reads a row whole: nothing may be missing, nothing may follow. o is overwritten; after an
// error it is meaningless.
func parseRow(data []byte, o *features.Observation) error {
	if len(data) == 0 {
		return errors.New("empty row")
	}
	if data[0] < 1 || data[0] > rowVersion {
		return fmt.Errorf("row version %d: this program reads %d: %w", data[0], rowVersion, errVersion)
	}
	*o = features.Observation{}
	c := codec{buf: data, pos: 1, reading: true}
	row(&c, o)
	if data[0] > 1 {
		trial(&c, o)
	}
	if c.err == nil && c.pos != len(data) {
		c.fail("row", "%d bytes too many", len(data)-c.pos)
	}
	return c.err
}

var schema = features.Schema()

const (
	maxSmall = 1 << 30
)

func row(c *codec, o *features.Observation) {
	s := string(o.Schema)
	c.text("schema", &s)
	if c.reading && c.err == nil && s != "" && s != string(schema) {
		c.err = fmt.Errorf("schema %q: this program reads %q: %w", s, schema, errSchema)
		return
	}
	o.Schema = features.SchemaID(s)
	at := o.At.UnixNano()
	integer(c, "at", &at, 0, math.MaxInt64)
	if c.reading {
		o.At = time.Unix(0, at).UTC()
	}
	what(c, o)
	if s != "" {
		forecast(c, o)
	}
	inflight(c, &o.State, o.At)
	load(c, &o.Load, o.At)
	outcome(c, o)
}

func what(c *codec, o *features.Observation) {
	c.text("id", &o.ID)
	natural(c, "api", &o.API, uint64(request.Audio))
	c.text("model", &o.Model)
	c.text("adapter", &o.Adapter)
	c.flag("stream", &o.Stream)
	c.span("slo.ttft", &o.SLO.TTFT)
	c.span("slo.itl", &o.SLO.ITL)
	c.span("slo.e2e", &o.SLO.E2E)
	integer(c, "priority", &o.Priority, math.MinInt64, math.MaxInt64)
	c.text("endpoint", &o.Endpoint)
	c.text("picked", &o.Picked)
	c.text("policy", &o.Policy)
	c.text("arm", &o.Arm)
	c.real64("propensity", &o.Propensity)
	integer(c, "hit_blocks", &o.HitBlocks, 0, maxSmall)
	integer(c, "hit_tokens", &o.HitTokens, 0, maxSmall)
	integer(c, "blocks", &o.Blocks, 0, maxSmall)
	integer(c, "max_tokens", &o.MaxTokens, 0, math.MaxInt64)
	where(c, &o.Where)
}

func where(c *codec, w *features.Where) {
	var class fleet.Class
	known := w.Class != (fleet.ClassID{})
	c.flag("class", &known)
	if known {
		if !c.reading {
			class = w.Class.Value()
		}
		c.text("class.model", &class.Model)
		c.text("class.gpu", &class.GPU)
		c.text("class.engine", &class.Engine)
		integer(c, "class.tp", &class.TP, 0, 1<<20)
		if c.reading && c.err == nil {
			w.Class = unique.Make(class)
		}
	}
	integer(c, "slot", &w.Slot, -1, maxSmall)
	natural(c, "instance", &w.Instance, math.MaxUint64)
}

func forecast(c *codec, o *features.Observation) {
	for i := range o.X {
		c.bits32("x", &o.X[i])
	}
	for t := range o.Said {
		for m := range o.Said[t] {
			c.bits32("said", &o.Said[t][m])
		}
	}
	for _, p := range []*features.Prediction{&o.Fore.TTFT, &o.Fore.ITL} {
		for _, v := range []*float32{&p.Mean, &p.P50, &p.P90, &p.P99} {
			c.real32("forecast", v)
		}
	}
	p := &o.Fore.Price
	for _, v := range []*float32{&p.First, &p.KVWait, &p.Prefill, &p.Gap, &p.Decode, &p.Sigma} {
		c.real32("price", v)
	}
}

func inflight(c *codec, s *fleet.Inflight, at time.Time) {
	for _, v := range []*int32{&s.Requests, &s.Pending, &s.Streaming} {
		integer(c, "state.requests", v, 0, maxSmall)
	}
	for _, v := range []*int64{&s.PendingTokens, &s.Uncached, &s.Attention, &s.HeadUncached, &s.Context} {
		integer(c, "state.tokens", v, 0, math.MaxInt64)
	}
	for _, v := range []*time.Time{&s.OldestPending, &s.LastBegin, &s.LastFirst, &s.LastToken, &s.LastEnd} {
		c.instant("state.times", v, at)
	}
	natural(c, "state.begun", &s.Begun, math.MaxUint64)
	natural(c, "state.begun_uncached", &s.BegunUncached, math.MaxUint64)
}

// load leaves the names of adapters out.
func load(c *codec, l *fleet.Load, at time.Time) {
	scraped := !l.At.IsZero()
	c.flag("load", &scraped)
	if !scraped {
		return
	}
	c.instant("load.at", &l.At, at)
	natural(c, "load.known", &l.Known, math.MaxUint16)
	natural(c, "load.held", &l.Held, math.MaxUint16)
	for _, v := range []*int32{&l.Waiting, &l.Running, &l.BlockSize, &l.Blocks, &l.MaxLoRA, &l.Own} {
		integer(c, "load.counts", v, math.MinInt32, math.MaxInt32)
	}
	c.real32("load.kv_usage", &l.KVUsage)
	c.real32("load.kv_max", &l.KVMax)
	for _, v := range []*float64{&l.Queries, &l.Hits, &l.Prompt, &l.Generated, &l.Preemptions} {
		c.real64("load.totals", v)
	}
	natural(c, "load.errors", &l.Errors, math.MaxUint32)
	natural(c, "load.restarts", &l.Restarts, math.MaxUint32)
	c.instant("load.held_at", &l.HeldAt, at)
	c.instant("load.changed_at", &l.ChangedAt, at)
	c.flag("load.unreachable", &l.Unreachable)
}

func outcome(c *codec, o *features.Observation) {
	integer(c, "prompt_tokens", &o.PromptTokens, features.Unknown, maxSmall)
	c.flag("exact_prompt", &o.ExactPrompt)
	integer(c, "cached_tokens", &o.CachedTokens, features.Unknown, maxSmall)
	integer(c, "output_tokens", &o.OutputTokens, features.Unknown, maxSmall)
	c.flag("exact_output", &o.ExactOutput)
	c.span("ttft", &o.TTFT)
	c.span("itl", &o.ITL)
	c.span("e2e", &o.E2E)
	natural(c, "cause", &o.Cause, uint64(fleet.Internal))
	integer(c, "status", &o.Status, 0, 999)
}

// trial is what an experiment is judged by.
func trial(c *codec, o *features.Observation) {
	natural(c, "session", &o.Session, math.MaxUint64)
	integer(c, "choice.among", &o.Choice.Among, 0, features.MostExplored)
	if o.Choice.Among == 0 {
		return
	}
	integer(c, "choice.rank", &o.Choice.Rank, 0, int64(o.Choice.Among-1))
	for i := range o.Choice.Among {
		c.real32("choice.ttft", &o.Choice.TTFT[i])
	}
}
