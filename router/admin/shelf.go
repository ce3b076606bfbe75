package admin

import (
	"sort"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// head is what is kept of one decision beside its rows.
type head struct {
	id      router.ID
	at      time.Time
	model   short
	adapter short
	policy  string
	arm     string
	failed  string
	failure string
	unit    string
	terms   []string
	names   []*fleet.Endpoint // by wordIndex; shared by all decisions over one set of endpoints
	slo     request.SLO
	picked  int // index of its row, or -1
	reason  router.Reason
	stream  bool
	draws   bool // rows carry chances
	fores   bool // rows carry forecasts
	all     bool // a row for every endpoint
	tokens  int  // prompt
	chance  float64

	ttft, itl features.Prediction // foretold of the picked endpoint; zero: nothing

	off, rows int // of the first word; number of rows

	out outcome
}

// outcome is how the request of a decision ended; its zero value says that it has not.
type outcome struct {
	cause                  fleet.Cause
	exactPrompt            bool
	exactOutput            bool
	status                 int16
	prompt, cached, output int32 // tokens; features.Unknown where nobody said
	ttft, itl, e2e         time.Duration
	picked, served         string // endpoints
}

func outcomeOf(o *features.Observation) outcome {
	return outcome{
		cause: o.Cause, exactPrompt: o.ExactPrompt, exactOutput: o.ExactOutput, status: int16(o.Status),
		prompt: int32(o.PromptTokens), cached: int32(o.CachedTokens), output: int32(o.OutputTokens),
		ttft: o.TTFT, itl: o.ITL, e2e: o.E2E, picked: o.Picked, served: o.Endpoint,
	}
}

func (h *head) width() int {
	w := fixedWords + len(h.terms)
	if h.fores {
		w += foreWords
	}
	return w
}

// short is a string copied by value: what clients send may be a piece of a large buffer.
type short struct {
	n uint8
	b [63]byte
}

func (s *short) set(v string) { s.n = uint8(copy(s.b[:], v)) }

// String returns what was kept of the string.
func (s *short) String() string { return string(s.b[:s.n]) }

// shelf keeps decisions first in, first out, in memory that never grows: a ring of heads and a ring
// of the words of their rows. Whichever is full first drops the oldest.
type shelf struct {
	heads []head
	words []uint32
	first int // oldest head
	count int
	next  int // word after the newest row
}

func newShelf(heads, words int) shelf {
	return shelf{heads: make([]head, max(1, heads)), words: make([]uint32, max(1, words))}
}

// at returns the i-th oldest head.
func (s *shelf) at(i int) *head { return &s.heads[(s.first+i)%len(s.heads)] }

// newest returns the newest head, or nil.
func (s *shelf) newest() *head {
	if s.count == 0 {
		return nil
	}
	return s.at(s.count - 1)
}

// size is the number of words of a decision, at least one, so that every decision has its place in
// the order in which words are dropped.
func (h *head) size() int { return max(1, h.rows*h.width()) }

// add makes room for a decision of so many words and returns its head, with off set, and its words.
// It returns nil when they would not fit into the shelf at all.
func (s *shelf) add(words int) (*head, []uint32) {
	size := max(1, words)
	if size > len(s.words) {
		return nil, nil
	}
	if s.count == len(s.heads) {
		s.drop()
	}
	off := s.next
	if off+size > len(s.words) {
		for s.count > 0 && s.at(0).off >= off { // what lies between here and the end is skipped
			s.drop()
		}
		off = 0
	}
	for s.count > 0 && s.at(0).off < off+size && off < s.at(0).off+s.at(0).size() {
		s.drop()
	}
	h := s.at(s.count)
	s.count++
	s.next = off + size
	h.off = off
	return h, s.words[off : off+words]
}

func (s *shelf) drop() {
	s.first = (s.first + 1) % len(s.heads)
	s.count--
}

// inOrder returns the decision of that id on a shelf filled in order of ids, or nil.
func (s *shelf) inOrder(id router.ID) *head {
	i := sort.Search(s.count, func(i int) bool { return s.at(i).id.Seq() >= id.Seq() })
	if i < s.count && s.at(i).id == id {
		return s.at(i)
	}
	return nil
}

// anywhere returns the decision of that id on a shelf filled in any order, or nil.
func (s *shelf) anywhere(id router.ID) *head {
	for i := range s.count {
		if h := s.at(i); h.id == id {
			return h
		}
	}
	return nil
}

// row returns the words of the i-th row.
func (s *shelf) row(h *head, i int) []uint32 {
	w := h.width()
	return s.words[h.off+i*w : h.off+(i+1)*w]
}
