package emulator

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// Emulator is one emulated server: an [http.Handler] whose engine [Emulator.Run] drives.
type Emulator struct {
	cfg   Config
	mux   *http.ServeMux
	start time.Time
	kick  chan struct{} // Run's timer may be too late now
	news  chan struct{} // told has grown

	mu       sync.Mutex
	eng      *engine.Engine
	due      time.Duration // when the engine wants to be advanced
	armed    bool          // due is valid
	closed   bool          // Run has ended
	streams  []*stream     // by slot
	gens     []uint32      // by slot; an event of an older generation is of a stream that left
	free     []uint32
	leaving  []leaver  // cancelled in the batch; the engine may still tell of their blocks
	told     []*stream // with news for their writers
	open     int
	adapters adapters
	running  []int32 // scratch: adapters in the batch, and waiting
	waiting  []int32
	faults   faults
	stats    engine.Stats
	meter    meter
	lateness lateness
	feed     *feed // nil: no KV events
}

// leaver is a cancelled stream that the engine forgets with the next step.
type leaver struct {
	slot  uint32
	steps uint64
}

// New returns a server with an idle engine and an empty cache. Its clock starts now.
func New(cfg Config) (*Emulator, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	eng, err := engine.New(cfg.Engine)
	if err != nil {
		return nil, err
	}
	cfg.Engine = eng.Config()
	e := &Emulator{
		cfg: cfg, eng: eng, start: time.Now(), kick: make(chan struct{}, 1), news: make(chan struct{}, 1),
		adapters: newAdapters(cfg.Adapters), meter: newMeter(), feed: newFeed(cfg.Events),
		faults: faults{rand: rand.New(rand.NewPCG(cfg.Engine.Seed, 0x6661756c74))},
	}
	e.eng.Stats(&e.stats)
	e.routes()
	return e, nil
}

// clock is the engine's time. It never shows less than due once the wait for it is over, whatever the
// conversions round. e.mu is held.
func (e *Emulator) clock() time.Duration {
	now := time.Duration(float64(time.Since(e.start)) * e.cfg.Speed)
	if e.armed && now < e.due && e.wall(e.due) <= 0 {
		return e.due
	}
	return now
}

// wall is the time on the wall until the engine's clock shows t.
func (e *Emulator) wall(t time.Duration) time.Duration {
	return time.Duration(float64(t)/e.cfg.Speed) - time.Since(e.start)
}

// seconds converts engine time to seconds as a client's clock sees them.
func (e *Emulator) seconds(d time.Duration) float64 { return d.Seconds() / e.cfg.Speed }

// Run drives the engine until ctx ends; then open requests fail and new ones are refused. It must
// be called once, and nothing is answered before.
func (e *Emulator) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var pump sync.WaitGroup
	pump.Go(func() { e.pump(ctx) })
	defer pump.Wait()
	for {
		e.mu.Lock()
		e.advance(e.clock())
		wait := time.Hour
		if e.armed {
			wait = max(e.wall(e.due), 0)
		}
		e.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-e.kick:
		case <-ctx.Done():
			e.mu.Lock()
			defer e.mu.Unlock()
			e.closed = true
			e.kill(e.clock())
			for _, s := range e.told {
				s.wake()
			}
			return
		}
	}
}

// kill ends the engine with all it does. e.mu is held.
func (e *Emulator) kill(now time.Duration) {
	events := e.eng.Kill(now)
	e.tellBlocks(e.eng.KVEvents())
	e.dispatch(events)
	for _, l := range e.leaving {
		e.recycle(l.slot)
	}
	e.leaving = e.leaving[:0]
	e.armed = false
}

// pump wakes the writers of streams with news, one after the other. Waking a whole batch at once
// would bury the goroutines of other engines, whose steps are due, in the scheduler's queues.
func (e *Emulator) pump(ctx context.Context) {
	var batch []*stream
	for {
		select {
		case <-e.news:
		case <-ctx.Done():
			return
		}
		e.mu.Lock()
		batch, e.told = e.told, batch[:0]
		for _, s := range batch {
			s.listed = false
		}
		e.mu.Unlock()
		for i, s := range batch {
			s.wake()
			batch[i] = nil
			runtime.Gosched()
		}
	}
}

// tell lists a stream for the pump. e.mu is held.
func (e *Emulator) tell(s *stream) {
	if s.listed {
		return
	}
	s.listed = true
	e.told = append(e.told, s)
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// advance brings the engine to the given time and tells the streams. e.mu is held.
func (e *Emulator) advance(now time.Duration) {
	if e.armed && now >= e.due {
		e.lateness.add(time.Duration(float64(now-e.due) / e.cfg.Speed))
	}
	events := e.eng.Advance(now)
	before := e.stats
	e.eng.Stats(&e.stats)
	e.meter.step(&before, &e.stats)
	e.tellBlocks(e.eng.KVEvents())
	e.dispatch(events)
	e.leaving = slices.DeleteFunc(e.leaving, func(l leaver) bool {
		if e.stats.Steps == l.steps {
			return false
		}
		e.recycle(l.slot)
		return true
	})
	e.due, e.armed = e.eng.Next()
}

// dispatch tells the streams what happened. e.mu is held.
func (e *Emulator) dispatch(events []engine.Event) {
	for i := range events {
		ev := &events[i]
		slot := uint32(ev.ID)
		s := e.streams[slot]
		if e.gens[slot] != uint32(ev.ID>>32) || s.ended {
			continue
		}
		switch ev.Kind {
		case engine.Scheduled:
			s.cached.Store(ev.N)
			s.scheduled = ev.At
		case engine.FirstToken:
			s.first, s.last = ev.At, ev.At
			e.meter.first(e.seconds(ev.At - s.arrived))
			s.told.Store(1)
		case engine.Progress:
			e.meter.gap(e.seconds(ev.At - s.last))
			s.last = ev.At
			s.told.Store(int64(ev.N))
		case engine.Preempted:
			s.preempted++
			continue
		case engine.Finished:
			if ev.N > 1 {
				e.meter.gap(e.seconds(ev.At - s.last))
			}
			s.last = ev.At
			e.meter.finished(s, e)
			s.told.Store(int64(ev.N) | flagDone)
			e.end(slot)
		case engine.Failed:
			e.meter.failed++
			s.told.Store(s.told.Load() | flagFailed)
			e.end(slot)
		default:
			continue
		}
		e.tell(s)
	}
}

// end takes a stream that has left the engine off the books. e.mu is held.
func (e *Emulator) end(slot uint32) {
	e.streams[slot].ended = true
	e.open--
	e.recycle(slot)
}

func (e *Emulator) recycle(slot uint32) {
	e.gens[slot]++
	e.free = append(e.free, slot)
}

var (
	errClosed = errors.New("the server is shutting down")
	errFull   = errors.New("too many requests are open")
)

// submit hands all answers of a request to the engine, or none. The streams share one channel.
func (e *Emulator) submit(a *ask) ([]*stream, error) {
	notify := make(chan struct{}, 1)
	out := make([]*stream, len(a.units))
	for i := range a.units {
		u := &a.units[i]
		all := u.all()
		out[i] = &stream{notify: notify, unit: u, adapter: a.adapter, blocks: chain(a.root, all, e.cfg.Engine.BlockSize)}
		if e.feed != nil {
			out[i].tokens = all
			if a.adapter != 0 {
				out[i].name = a.Model
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	if e.open+len(out) > e.cfg.MaxOpen {
		e.meter.rejected++
		return nil, errFull
	}
	now := e.clock()
	e.advance(now)
	for i, s := range out {
		slot := e.slot(s)
		s.arrived = now
		h, err := e.eng.Submit(now, &engine.Request{
			ID: uint64(e.gens[slot])<<32 | uint64(slot), PromptTokens: len(s.unit.tokens), OutputTokens: s.unit.output,
			Blocks: s.blocks, Adapter: s.adapter, Priority: a.Priority,
		})
		if err != nil {
			e.end(slot)
			for _, s := range out[:i] {
				e.drop(now, s)
			}
			return nil, err
		}
		s.handle, s.slot = h, slot
	}
	e.meter.asked(a)
	e.rearm()
	return out, nil
}

// rearm lets Run set its timer anew if the engine wants to wake earlier. e.mu is held.
func (e *Emulator) rearm() {
	due, armed := e.eng.Next()
	if armed && (!e.armed || due < e.due) {
		select {
		case e.kick <- struct{}{}:
		default:
		}
	}
	e.due, e.armed = due, armed
}

// slot puts a stream on the books. e.mu is held.
func (e *Emulator) slot(s *stream) uint32 {
	e.open++
	if n := len(e.free); n > 0 {
		i := e.free[n-1]
		e.free = e.free[:n-1]
		e.streams[i] = s
		return i
	}
	e.streams, e.gens = append(e.streams, s), append(e.gens, 0)
	return uint32(len(e.streams) - 1)
}

// cancel ends the answers of a request whose client has left.
func (e *Emulator) cancel(streams []*stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	e.advance(now)
	for _, s := range streams {
		e.drop(now, s)
	}
	e.rearm()
}

// drop cancels one answer, if it is still under way. e.mu is held.
func (e *Emulator) drop(now time.Duration, s *stream) {
	if s.ended || !e.eng.Cancel(now, s.handle) {
		return
	}
	s.ended = true
	e.open--
	e.meter.aborted++
	e.leaving = append(e.leaving, leaver{s.slot, e.stats.Steps})
}

// Stats returns the engine's gauges and counters.
func (e *Emulator) Stats() engine.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// Open returns the number of answers under way.
func (e *Emulator) Open() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// Lateness returns how late the engine was woken, since the start.
func (e *Emulator) Lateness() Late {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lateness.late()
}

// ServeHTTP answers one request.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != faultPath && e.gone() {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	e.mux.ServeHTTP(w, r)
}

var _ http.Handler = (*Emulator)(nil)
