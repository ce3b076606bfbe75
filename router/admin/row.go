package admin

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// A row is what is kept of one endpoint at one decision: fixed words, then one per term. Counts that
// do not fit are kept as the largest that does.
const (
	wordTotal   = iota // float32
	wordChance         // float32, probability of being drawn
	wordCached         // prompt tokens believed to be cached
	wordPending        // uncached tokens in flight before their first token
	wordQueue          // waiting, running: 16 bits each
	wordGauges         // KV usage, age of the page: 16 bits each
	wordLedger         // filter: 8 bits, requests in flight: 24 bits
	wordIndex          // of the endpoint in the head's list
	fixedWords
)

// Where the policy used forecasts, three more words follow the terms: TTFT P50 and P90, TTFT P99 and
// ITL P50, ITL P90 and P99, each in 16 bits.
const foreWords = 3

// none marks a 16-bit reading that is not known.
const none = math.MaxUint16

// ageStep is the resolution of the age of a page, in milliseconds.
const ageStep = 10

func half(v int64, known bool) uint32 {
	if !known || v < 0 {
		return none
	}
	return uint32(min(v, none-1))
}

func pack(high, low uint32) uint32 { return high<<16 | low }

// share packs a value in [0,1] into 16 bits.
func share(v float32, known bool) uint32 {
	if !known || !(v >= 0 && v <= 1) { //nolint:staticcheck // NaN is not known
		return none
	}
	return uint32(v*(none-1) + 0.5)
}

// putState writes what the endpoint looked like. age is that of its page in milliseconds, negative
// if it has none.
func putState(w []uint32, s *fleet.State, ageMS int64) {
	w[wordPending] = uint32(min(max(s.Uncached, 0), math.MaxUint32))
	w[wordQueue] = pack(half(int64(s.Waiting), s.Known.Has(fleet.KnowWaiting)), half(int64(s.Running), s.Known.Has(fleet.KnowRunning)))
	w[wordGauges] = pack(share(s.KVUsage, s.Known.Has(fleet.KnowKV)), half(ageMS/ageStep, ageMS >= 0))
}

// brief packs a time in seconds into 16 bits: 5 bits of exponent, 11 of mantissa, which is 0.02 % from
// 15 microseconds to 18 hours; what is outside becomes the nearest inside, 0 is nothing.
func brief(seconds float32) uint32 {
	const least, most = 1.0 / (1 << 16), 1<<16 - 32
	if !(seconds > 0) {
		return 0
	}
	bits := math.Float32bits(min(max(seconds, least), most)) - (127-16)<<23
	return max(1, (bits+1<<11)>>12)
}

// long is the time that brief packed.
func long(v uint32) float32 {
	if v &= math.MaxUint16; v != 0 {
		return math.Float32frombits(v<<12 + (127-16)<<23)
	}
	return 0
}

// putFore writes what is foretold.
func putFore(w []uint32, f *features.Forecast) {
	w[0] = pack(brief(f.TTFT.P50), brief(f.TTFT.P90))
	w[1] = pack(brief(f.TTFT.P99), brief(f.ITL.P50))
	w[2] = pack(brief(f.ITL.P90), brief(f.ITL.P99))
}

// foreOf reads what putFore wrote.
func foreOf(w []uint32) (ttft, itl features.Prediction) {
	return features.Prediction{P50: long(w[0] >> 16), P90: long(w[0]), P99: long(w[1] >> 16)},
		features.Prediction{P50: long(w[1]), P90: long(w[2] >> 16), P99: long(w[2])}
}

// reading returns a 16-bit value, nil where it is not known.
func reading(v uint32) *int {
	if v &= math.MaxUint16; v != none {
		n := int(v)
		return &n
	}
	return nil
}

func gauge(v uint32) *float64 {
	if v &= math.MaxUint16; v != none {
		x := math.Round(float64(v)/(none-1)*1e4) / 1e4
		return &x
	}
	return nil
}
