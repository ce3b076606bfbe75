package cluster

import "time"

// task says what an item of the agenda is about.
type task uint8

const (
	taskAsk     task = iota // a request reaches the router
	taskSubmit              // a request reaches its engine
	taskLeave               // the router hears that a client left
	taskCancel              // the engine hears it
	taskDeliver             // a KV transfer is over
	taskScrape              // engines write their pages
	taskPage                // the router gets them
	taskEvent               // something happens to engines
	taskSeeing              // the metrics of a blind engine move again
)

// item is something to do at an instant.
type item struct {
	at   time.Duration
	seq  uint64 // in order of planning
	task task
	trip *trip
	gen  uint32 // of the trip, where it may have ended
	n    int
}

func (a *item) before(b *item) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// agenda is what there is to do, the earliest first: a binary heap.
type agenda struct {
	items []item
	seq   uint64
}

func (a *agenda) push(it item) {
	a.seq++
	it.seq = a.seq
	a.items = append(a.items, it)
	p := len(a.items) - 1
	for p > 0 {
		parent := (p - 1) / 2
		if !it.before(&a.items[parent]) {
			break
		}
		a.items[p] = a.items[parent]
		p = parent
	}
	a.items[p] = it
}

func (a *agenda) pop() item {
	top := a.items[0]
	last := len(a.items) - 1
	it := a.items[last]
	a.items[last] = item{}
	a.items = a.items[:last]
	if last == 0 {
		return top
	}
	p := 0
	for {
		kid := 2*p + 1
		if kid >= last {
			break
		}
		if kid+1 < last && a.items[kid+1].before(&a.items[kid]) {
			kid++
		}
		if !a.items[kid].before(&it) {
			break
		}
		a.items[p] = a.items[kid]
		p = kid
	}
	a.items[p] = it
	return top
}

// alarm is when an engine next has something to do.
type alarm struct {
	due  time.Duration
	node int32
}

func (a alarm) before(b alarm) bool { return a.due < b.due || a.due == b.due && a.node < b.node }

// never is later than everything.
const never = time.Duration(1<<63 - 1)

// alarms is a heap of the engines, the earliest first.
type alarms struct {
	heap []alarm
	at   []int32 // place of each engine
}

func newAlarms(n int) alarms {
	a := alarms{heap: make([]alarm, n), at: make([]int32, n)}
	for i := range n {
		a.heap[i], a.at[i] = alarm{due: never, node: int32(i)}, int32(i)
	}
	return a
}

// set changes when an engine is due.
func (a *alarms) set(node int, due time.Duration) {
	p := int(a.at[node])
	if a.heap[p].due == due {
		return
	}
	it := alarm{due: due, node: int32(node)}
	for p > 0 && it.before(a.heap[(p-1)/2]) {
		a.place(p, a.heap[(p-1)/2])
		p = (p - 1) / 2
	}
	for {
		kid := 2*p + 1
		if kid >= len(a.heap) {
			break
		}
		if kid+1 < len(a.heap) && a.heap[kid+1].before(a.heap[kid]) {
			kid++
		}
		if !a.heap[kid].before(it) {
			break
		}
		a.place(p, a.heap[kid])
		p = kid
	}
	a.place(p, it)
}

func (a *alarms) place(p int, it alarm) {
	a.heap[p] = it
	a.at[it.node] = int32(p)
}

// word is something an engine said that is on its way to the router.
type word struct {
	at   time.Duration
	trip *trip
	kind wordKind
	n    int32
}

type wordKind uint8

const (
	wordTokens wordKind = iota // n tokens so far
	wordEnd                    // the answer is complete
	wordBroken                 // the connection broke
	wordError                  // an HTTP status, in n
)

// feed is a queue of words: they all travel equally long.
type feed struct {
	words []word
	head  int
}

func (f *feed) push(w word) { f.words = append(f.words, w) }

func (f *feed) next() *word {
	if f.head == len(f.words) {
		return nil
	}
	return &f.words[f.head]
}

func (f *feed) pop() word {
	w := f.words[f.head]
	f.words[f.head] = word{}
	f.head++
	switch {
	case f.head == len(f.words):
		f.words, f.head = f.words[:0], 0
	case f.head >= 1024 && 2*f.head >= len(f.words):
		f.words = f.words[:copy(f.words, f.words[f.head:])]
		f.head = 0
	}
	return w
}
