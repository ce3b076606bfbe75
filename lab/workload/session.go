package workload

import (
	"math/rand/v2"

	"github.com/presage-router/presage/lab/cluster"
)

// conversation yields the later requests of a session. Each repeats the whole text so far.
type conversation struct {
	c    *class
	id   uint64
	like cluster.Job // the first request
	text chain
	rng  *rand.Rand
	left int
	turn int
}

// Next yields the next request, its At being the time the user thinks.
func (v *conversation) Next(j *cluster.Job) bool {
	s := v.c.t.Session
	if v.left == 0 {
		return false
	}
	v.left--
	v.turn++
	ask, answer := s.Next.Tokens(v.rng), v.c.t.capped(v.c.t.Output.Tokens(v.rng))
	think := s.Think.Sample(v.rng)
	if s.Limit > 0 && v.text.tokens+ask+answer > s.Limit {
		v.left = 0
		return false
	}
	id := nameOf(v.id, "turn", v.turn)
	v.text.append(mix(id), ask)
	*j = v.like
	j.At = seconds(think)
	j.PromptTokens, j.OutputTokens = v.text.tokens, answer
	v.text.append(mix(id+1), answer)
	j.Blocks = v.text.view()
	j.CancelAfter = 0
	v.c.cancel(j, &draws{cancel: v.rng})
	return true
}

// user is a closed-loop user: after each answer, and some thought, the next request, for ever. With
// sessions, one conversation after the other.
type user struct {
	c      *class
	draws  *draws
	think  *Dist
	rounds int // 0: without an end
	number int
	round  int
	talk   cluster.Source // the conversation going on
}

// Next yields the user's next request.
func (u *user) Next(j *cluster.Job) bool {
	if u.talk != nil && u.talk.Next(j) {
		return true
	}
	if u.rounds > 0 && u.round == u.rounds {
		return false
	}
	u.c.first(j, 0, u.draws, u.number, u.round)
	u.round++
	u.talk, j.Then = j.Then, nil
	j.At = seconds(u.think.Sample(u.draws.user))
	return true
}

var (
	_ cluster.Source = (*conversation)(nil)
	_ cluster.Source = (*user)(nil)
)
