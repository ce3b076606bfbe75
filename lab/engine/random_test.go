package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tiny is an engine with round step times: 1 ms a step, and a little per token.
func tiny() Coefs {
	return Coefs{
		GPU: "H100", Model: "tiny", TP: 1, DType: "bfloat16", Knots: []float64{1, 100}, G: []float64{1000, 1500},
		PrefillFix: 20, PrefillLin: 2, PrefillQuad: 0.01, DecodeFix: 10, DecodeSeq: 3, DecodeKV: 0.1, LM1: 5, LM64: 6, LM256: 7, KVBlocks: 64,
	}
}

// chain hashes a token sequence into full blocks.
func chain(tokens []byte, size int) []uint64 {
	h := uint64(14695981039346656037)
	var out []uint64
	for i, b := range tokens {
		h = (h ^ uint64(b+1)) * 1099511628211
		if (i+1)%size == 0 {
			out = append(out, h)
		}
	}
	return out
}

// act is one thing that happens to an engine.
type act struct {
	at    time.Duration
	kind  string
	req   Request
	which int // of the requests submitted so far
	d     time.Duration
	f     float64
}

func drawConfig(t *rapid.T) Config {
	profile := Sync()
	profile.Step, profile.Seq = 100, 5
	profile.Lag = rapid.IntRange(0, 1).Draw(t, "lag")
	profile.Frontend = rapid.SampledFrom([]time.Duration{0, 300 * time.Microsecond, 5 * time.Millisecond}).Draw(t, "frontend")
	seqs := rapid.IntRange(1, 6).Draw(t, "seqs")
	return Config{
		Coefs:              tiny(),
		Profile:            profile,
		BlockSize:          rapid.IntRange(1, 5).Draw(t, "block"),
		Blocks:             rapid.IntRange(8, 60).Draw(t, "blocks"),
		MaxSeqs:            seqs,
		MaxBatched:         rapid.IntRange(seqs, 40).Draw(t, "batched"),
		LongPrefill:        rapid.SampledFrom([]int{0, 0, 3, 7}).Draw(t, "threshold"),
		Watermark:          rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(t, "watermark"),
		NoCache:            rapid.IntRange(0, 9).Draw(t, "nocache") == 0,
		PriorityScheduling: rapid.IntRange(0, 3).Draw(t, "by priority") == 0,
		MaxLoRA:            rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "adapters"),
		LoRASwap:           2 * time.Millisecond,
		LoRACold:           9 * time.Millisecond,
		Progress:           rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "progress"),
		KVEvents:           rapid.Bool().Draw(t, "kv events"),
	}
}

// drawActs draws a workload on a tree of few tokens, so that prompts and answers share prefixes of
// all lengths, exact duplicates and live generations included.
func drawActs(t *rapid.T, cfg *Config, plain bool) []act {
	kinds := []string{"submit", "submit", "submit", "submit", "cancel", "stall", "slow", "profile", "limits"}
	if plain {
		kinds = []string{"submit"}
	}
	at := time.Duration(0)
	var acts []act
	total := (cfg.Blocks - 1) * cfg.BlockSize
	for range rapid.IntRange(1, 40).Draw(t, "acts") {
		at += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 700, 3000, 20000}).Draw(t, "gap")) * time.Microsecond
		a := act{at: at, kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch a.kind {
		case "submit":
			size := rapid.IntRange(2, min(total, 60)).Draw(t, "tokens")
			tokens := make([]byte, size+rapid.IntRange(0, 1).Draw(t, "over"))
			for i := range tokens {
				tokens[i] = byte(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 1}).Draw(t, "token"))
			}
			blocks := chain(tokens, cfg.BlockSize)
			if rapid.IntRange(0, 5).Draw(t, "short chain") == 0 {
				blocks = blocks[:len(blocks)/2]
			}
			prompt := rapid.IntRange(1, size-1).Draw(t, "prompt")
			a.req = Request{ID: uint64(len(acts)), PromptTokens: prompt, OutputTokens: size - prompt, Blocks: blocks}
			if !plain {
				a.req.Adapter = int32(rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "adapter"))
				a.req.Priority = int32(rapid.IntRange(0, 2).Draw(t, "priority"))
				a.req.Hold = rapid.IntRange(0, 9).Draw(t, "hold") == 0
				a.req.Remote = rapid.IntRange(0, 9).Draw(t, "remote") == 0
			}
		case "limits":
			a.which = rapid.IntRange(1, cfg.MaxBatched).Draw(t, "seqs")
		default:
			a.which = rapid.IntRange(0, 40).Draw(t, "which")
			a.d = time.Duration(rapid.IntRange(0, 5000).Draw(t, "us")) * time.Microsecond
			a.f = rapid.Float64Range(0.5, 4).Draw(t, "factor")
		}
		acts = append(acts, a)
	}
	return acts
}

// drive runs a workload, calling look after every Advance, and returns when the engine is idle.
// Requests whose KV is awaited get it 3 ms later, those that hold theirs release it 4 ms later.
func drive(t *rapid.T, e *Engine, acts []act, look func(events []Event, kv []KVEvent)) {
	handles := map[uint64]Handle{}
	var order []Handle
	var later []act
	advance := func(now time.Duration) {
		events := e.Advance(now)
		for _, ev := range events {
			switch ev.Kind {
			case Allocated:
				later = append(later, act{at: ev.At + 3*time.Millisecond, kind: "deliver", req: Request{ID: ev.ID}})
			case Finished:
				later = append(later, act{at: ev.At + 4*time.Millisecond, kind: "release", req: Request{ID: ev.ID}})
			case Scheduled, FirstToken, Progress, Preempted, Failed:
			}
		}
		look(events, e.KVEvents())
	}
	for steps := 0; ; steps++ {
		if steps > 200000 {
			t.Fatal("the engine never becomes idle: livelock")
		}
		due, ok := e.Next()
		pick := -1
		for k := range later {
			if pick < 0 || later[k].at < later[pick].at {
				pick = k
			}
		}
		var next *act
		if pick >= 0 {
			next = &later[pick]
		}
		if len(acts) > 0 && (next == nil || acts[0].at < next.at) {
			next, pick = &acts[0], -1
		}
		if next == nil && !ok {
			return
		}
		if next == nil || ok && due <= next.at {
			advance(due)
			continue
		}
		a := *next
		if pick >= 0 {
			later = append(later[:pick], later[pick+1:]...)
		} else {
			acts = acts[1:]
		}
		advance(a.at)
		switch a.kind {
		case "submit":
			h, err := e.Submit(a.at, &a.req)
			if err != nil {
				t.Fatalf("submit %+v: %v", a.req, err)
			}
			handles[a.req.ID] = h
			order = append(order, h)
		case "cancel":
			if a.which < len(order) {
				e.Cancel(a.at, order[a.which])
			}
		case "stall":
			e.Stall(a.at, a.d)
		case "slow":
			if err := e.SetSlowdown(a.f); err != nil {
				t.Fatal(err)
			}
		case "profile":
			p := e.Config().Profile
			p.Step, p.Lag = 1000*a.f, 1-p.Lag
			p.Frontend = a.d
			if err := e.SetProfile(p); err != nil {
				t.Fatal(err)
			}
		case "limits":
			if err := e.SetLimits(a.which, e.Config().MaxBatched); err != nil {
				t.Fatal(err)
			}
		case "release":
			if h, ok := handles[a.req.ID]; ok {
				e.Release(a.at, h)
			}
		case "deliver":
			e.Deliver(a.at, handles[a.req.ID])
		}
	}
}

// TestInvariantsAtEveryStep runs random workloads and checks after every step that everything the
// engine keeps adds up (audit), that each request's events come in their order and complete
// (witness), and that the KV events replayed elsewhere give the very prefix cache of the engine.
func TestInvariantsAtEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.KVEvents = true
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		acts := drawActs(t, &cfg, false)
		w := newWitness(acts)
		replica := map[uint64]bool{}
		drive(t, e, acts, func(events []Event, changes []KVEvent) {
			if err := e.audit(); err != nil {
				t.Fatal(err)
			}
			if err := w.see(e, events); err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				for _, h := range c.Hashes {
					if c.Kind == Removed && !replica[h] {
						t.Fatalf("block %x removed, but never stored", h)
					}
					if replica[h] = true; c.Kind == Removed {
						delete(replica, h)
					}
				}
			}
			if diff := cmp.Diff(e.hashes(), replica); diff != "" {
				t.Fatalf("prefix cache (-engine +replayed events):\n%s", diff)
			}
		})
		if e.cache.held() != 0 || e.running.n+e.waiting.n+e.awaiting > 0 {
			t.Fatalf("idle, but %d blocks held, %d running, %d waiting, %d awaiting", e.cache.held(), e.running.n, e.waiting.n, e.awaiting)
		}
	})
}

// hashes is the set of cached blocks; lengths must be settled.
func (e *Engine) hashes() map[uint64]bool {
	set := map[uint64]bool{}
	for _, n := range e.cache.nodes {
		for _, h := range n.hashes {
			set[h] = true
		}
	}
	return set
}

// witness follows the events of requests.
type witness struct {
	reqs map[uint64]*seen
	last time.Duration
}

type seen struct {
	act
	scheduled, first, ended bool
	tokens                  int32
}

func newWitness(acts []act) *witness {
	w := &witness{reqs: map[uint64]*seen{}}
	for _, a := range acts {
		if a.kind == "submit" {
			w.reqs[a.req.ID] = &seen{act: a}
		}
	}
	return w
}

func (w *witness) see(e *Engine, events []Event) error {
	for _, ev := range events {
		r := w.reqs[ev.ID]
		switch {
		case r == nil || r.ended:
			return fmt.Errorf("%+v: no such request", ev)
		case ev.At < w.last || ev.At > time.Duration(e.now) || ev.At < r.at:
			return fmt.Errorf("%+v: after %v, submitted %v, now %v", ev, w.last, r.at, time.Duration(e.now))
		case ev.Kind != Preempted && ev.Kind != Scheduled && ev.Kind != Allocated && ev.N < r.tokens:
			return fmt.Errorf("%+v: had %d tokens", ev, r.tokens)
		}
		w.last = ev.At
		switch ev.Kind {
		case Scheduled, Allocated:
			if r.scheduled {
				return fmt.Errorf("%+v: told twice", ev)
			}
			r.scheduled = true
		case FirstToken:
			if r.first || !r.scheduled || ev.N != 1 {
				return fmt.Errorf("%+v: out of order", ev)
			}
			r.first, r.tokens = true, 1
		case Progress:
			if p := int32(e.cfg.Progress); !r.first || (ev.N-1)%p != 0 || ev.N != r.tokens+p {
				return fmt.Errorf("%+v: had %d tokens", ev, r.tokens)
			}
			r.tokens = ev.N
		case Preempted:
			if ev.N < r.tokens {
				return fmt.Errorf("%+v: had %d tokens", ev, r.tokens)
			}
		case Finished:
			if !r.first || int(ev.N) != r.req.OutputTokens {
				return fmt.Errorf("%+v: asked for %d tokens", ev, r.req.OutputTokens)
			}
			r.ended = true
		case Failed:
			r.ended = true
		}
	}
	return nil
}
