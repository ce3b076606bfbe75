package router

// fewest is the plain rule for when a policy cannot decide: the candidate with the fewest requests
// in flight, a random one among equals.
func (q *Query) fewest(d *Decision) {
	values := d.Why.Size("requests", fewestTerms, len(q.Keep))
	best, ties := int32(0), 0
	for i, k := range q.Keep {
		if !k {
			continue
		}
		n := q.Snap.States[i].Requests
		values[i], d.Why.Totals[i] = float32(n), float32(n)
		switch {
		case ties == 0 || n < best:
			best, ties = n, 1
		case n == best:
			ties++
		}
	}
	nth := q.Rand.IntN(ties)
	for i, k := range q.Keep {
		if !k || q.Snap.States[i].Requests != best {
			continue
		}
		if nth == 0 {
			d.Index, d.Propensity = i, 1/float64(ties)
			return
		}
		nth--
	}
}

var fewestTerms = []string{"requests"}
