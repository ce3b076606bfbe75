package compare

import "github.com/presage-router/presage/lab/cluster"

// reuse knows which blocks of tokens some engine has computed in this run, so that computing them
// again shows: on another engine beside one that holds them, or anywhere after they were evicted. A
// prompt's known tokens are its beginning that an earlier prompt or answer had, earlier in order of
// ends, in steps of 64 tokens; those of them that no cache served are recomputed. Every block is thus
// computed once for free, whoever was first. What engines compute again after a preemption is not in it.
type reuse struct {
	computed map[uint64]struct{} // hashes of chains, one per reuseStep blocks
}

// reuseStep is the number of 16-token blocks between two hashes that are kept.
const (
	reuseStep   = 4
	reuseTokens = 16
)

// add notes the blocks of a request, and returns how many tokens of its prompt were known before.
func (u *reuse) add(r *cluster.Record) (known int) {
	if r.CachedTokens < 0 {
		return 0 // no engine came to it
	}
	if u.computed == nil {
		u.computed = map[uint64]struct{}{}
	}
	n := min(r.PromptTokens+r.OutputTokens, len(r.Blocks)*reuseTokens) / reuseTokens
	run := true
	for i := reuseStep - 1; i < n; i += reuseStep {
		h := r.Blocks[i]
		if _, ok := u.computed[h]; ok {
			if run {
				known = (i + 1) * reuseTokens
			}
			continue
		}
		run = false
		u.computed[h] = struct{}{}
	}
	return min(known, max(r.PromptTokens-1, 0)) // the last token is always computed
}
