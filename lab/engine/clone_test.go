package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// past is an engine with the requests that were submitted to it.
type past struct {
	*Engine
	handles []Handle
	log     strings.Builder
}

func (p *past) advance(now time.Duration) {
	for _, ev := range p.Advance(now) {
		fmt.Fprintln(&p.log, int64(ev.At), ev.ID, ev.Kind, ev.N)
	}
	for _, ev := range p.KVEvents() {
		fmt.Fprintln(&p.log, int64(ev.At), ev.Kind, ev.ID, ev.First, ev.Hashes)
	}
}

// play does what happens to an engine; requests that need a second engine are taken as plain ones.
func (p *past) play(acts []act) {
	for i := range acts {
		a := &acts[i]
		p.advance(a.at)
		switch {
		case a.kind == "submit":
			r := a.req
			r.Hold, r.Remote = false, false
			if h, err := p.Submit(a.at, &r); err == nil {
				p.handles = append(p.handles, h)
			}
		case a.kind == "cancel" && len(p.handles) > 0:
			p.Cancel(a.at, p.handles[a.which%len(p.handles)])
		case a.kind == "stall":
			p.Stall(a.at, a.d)
		case a.kind == "slow":
			_ = p.SetSlowdown(a.f)
		}
	}
}

// end runs the engine until it is idle and returns everything it said.
func (p *past) end() string {
	for due, ok := p.Next(); ok; due, ok = p.Next() {
		p.advance(due)
	}
	var s Stats
	p.Stats(&s)
	fmt.Fprintf(&p.log, "%+v\n", s)
	return p.log.String()
}

// TestClonesHaveTheSameFuture: whatever happened before and happens after, a clone says what the
// original says to the last byte, and what is done to one is not seen by the other.
func TestClonesHaveTheSameFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.Noise, cfg.Seed = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "noise"), rapid.Uint64().Draw(t, "seed")
		acts := drawActs(t, &cfg, false)
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		k := rapid.IntRange(0, len(acts)).Draw(t, "cloned after")
		p := past{Engine: e}
		p.play(acts[:k])
		p.log.Reset()
		c := past{Engine: e.Clone(), handles: append([]Handle(nil), p.handles...)}
		c.play(acts[k:])
		clone := c.end()
		p.play(acts[k:])
		if diff := cmp.Diff(p.end(), clone); diff != "" {
			t.Fatalf("-original +clone:\n%s", diff)
		}
		for _, x := range []*Engine{e, c.Engine} {
			if err := x.audit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMuteChangesNoTime: a muted clone tells what the original tells, but for progress and KV events.
func TestMuteChangesNoTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		acts := drawActs(t, &cfg, false)
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		k := rapid.IntRange(0, len(acts)).Draw(t, "muted after")
		p := past{Engine: e}
		p.play(acts[:k])
		c := past{Engine: e.Clone(), handles: append([]Handle(nil), p.handles...)}
		c.Mute()
		p.log.Reset()
		c.play(acts[k:])
		p.play(acts[k:])
		said := func(text string) (kept []string) {
			for line := range strings.Lines(text) {
				if !strings.Contains(line, " progress ") && len(strings.Fields(line)) == 4 {
					kept = append(kept, line)
				}
			}
			return kept
		}
		if diff := cmp.Diff(said(p.end()), said(c.end())); diff != "" {
			t.Fatalf("-original +muted:\n%s", diff)
		}
		if err := c.audit(); err != nil {
			t.Fatal(err)
		}
	})
}
