package features

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// Field is one feature of a [Vector].
type Field int

// The features. Times are in seconds, lengths in model tokens, counts in requests. NaN means
// unknown, which is not zero; only what a scrape or the client may leave out can be unknown.
const (
	// The request on this endpoint.
	Prompt    Field = iota // prompt tokens
	Uncached               // prompt tokens beyond the match in the prefix index
	MaxTokens              // cap of the answer given by the client: no forecast of its length; NaN: none
	Adapter                // 1: a LoRA adapter is asked for
	Media                  // images, audio and video parts

	// The ledger of the endpoint just before the decision: the router's own work.
	Pending          // requests dispatched without a first token
	PendingPrompt    // their prompt tokens
	PendingUncached  // those of them that the endpoint must compute
	PendingAttention // their attention work, sum of u*(c+u/2), in token^2
	HeadUncached     // uncached tokens of the oldest pending request
	HeadAge          // since the endpoint could begin with it: its dispatch or the last first token
	OldestPending    // since the oldest pending request was dispatched; 0: none
	Streams          // answers streaming
	Context          // their prompt and generated tokens
	SinceToken       // since the last token of any answer, at most 60
	FirstRate        // first tokens per second, tau 1 s
	PrefillRate      // uncached prompt tokens prefilled per second, tau 1 s
	PrefillLoad      // the same, tau 10 s
	AttentionLoad    // attention work prefilled per second, tau 10 s, in token^2
	RecentTTFT       // fading mean of the last TTFTs; NaN: none
	RecentITL        // fading mean of the mean gaps of the last answers; NaN: none
	StepTime         // mean gap of the answers now streaming, by counting their tokens; NaN: too few

	// The last scrape.
	Waiting  // requests queued in the engine
	Running  // requests in the engine's batch
	KVUsage  // share of KV blocks in use
	KVTokens // KV capacity in tokens
	Foreign  // requests of others in the engine
	GaugeAge // age of the page, at most 60; NaN: never scraped

	// Dim is the number of features.
	Dim
)

// fieldNames are stable: models trained elsewhere name features by them.
var fieldNames = [Dim]string{
	"prompt_tokens", "uncached_tokens", "max_tokens", "adapter", "media_units",
	"pending", "pending_prompt_tokens", "pending_uncached_tokens", "pending_attention", "head_uncached_tokens", "head_age_s",
	"oldest_pending_s", "streams", "context_tokens", "since_token_s", "first_rate", "prefill_rate", "prefill_load", "attention_load",
	"recent_ttft_s", "recent_itl_s", "step_time_s",
	"waiting", "running", "kv_usage", "kv_tokens", "foreign", "gauge_age_s",
}

// String returns the name of the feature.
func (f Field) String() string {
	if f < 0 || f >= Dim {
		return fmt.Sprintf("field %d", int(f))
	}
	return fieldNames[f]
}

// FieldNames returns the names of all features, in order.
func FieldNames() []string { return append([]string(nil), fieldNames[:]...) }

// Vector is one request on one endpoint, as numbers.
type Vector [Dim]float32

// At returns a feature as a float64, and 0 where it is unknown.
func (x *Vector) At(f Field) float64 {
	v := x[f]
	if v != v {
		return 0
	}
	return float64(v)
}

// SchemaID names the meaning of the numbers in a [Vector]. A model knows the schema it was trained
// with and is refused under another.
type SchemaID string

// Schema is the schema of this program: its version and a hash of the names of the features.
func Schema() SchemaID {
	h := fnv.New32a()
	for _, n := range fieldNames {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return SchemaID(fmt.Sprintf("v1-%08x", h.Sum32()))
}

// Where says of which endpoint a vector speaks: models are kept per class, corrections per instance.
type Where struct {
	Class    fleet.ClassID
	Slot     int32 // dense, see [fleet.State]
	Instance uint64
}

const oldest = 60 // seconds; beyond, age tells nothing more

// Extract sets dst[i] and at[i] to the request on snap.States[i]; hits[i] is the number of its
// prefix blocks found there. dst, at and hits have the length of snap.States. It allocates nothing.
func Extract(dst []Vector, at []Where, r *request.Request, snap *fleet.Snapshot, hits []int32) {
	for i := range snap.States {
		at[i] = dst[i].Take(r, &snap.States[i], snap.At, int(hits[i]))
	}
}

// Take sets x to the request on one endpoint, of whose prefix cache hits blocks are matched.
func (x *Vector) Take(r *request.Request, s *fleet.State, now time.Time, hits int) Where {
	*x = Vector{}
	x[Prompt] = float32(r.PromptTokens)
	x[Uncached] = float32(max(0, r.PromptTokens-r.CachedTokens(hits)))
	x[MaxTokens] = positive(float64(r.MaxTokens))
	if r.Adapter != "" {
		x[Adapter] = 1
	}
	x[Media] = float32(r.MediaUnits)
	x.ledger(s, now)
	x.scraped(s.Load, now)
	return Where{Class: s.Class, Slot: int32(s.Slot), Instance: s.Instance}
}

func (x *Vector) ledger(s *fleet.State, now time.Time) {
	in := &s.Inflight
	x[Pending] = float32(in.Pending)
	x[PendingPrompt] = float32(in.PendingTokens)
	x[PendingUncached] = float32(in.Uncached)
	x[PendingAttention] = float32(float64(in.Attention) / 2)
	if in.Pending > 0 {
		x[HeadUncached] = float32(in.HeadUncached)
		began := in.OldestPending
		if in.LastFirst.After(began) {
			began = in.LastFirst
		}
		x[HeadAge] = age(now, began)
		x[OldestPending] = age(now, in.OldestPending)
	}
	x[Streams] = float32(in.Streaming)
	x[Context] = float32(in.Context)
	x[SinceToken] = age(now, in.LastToken)
	firsts, prefill := s.Rates(now)
	x[FirstRate], x[PrefillRate] = float32(firsts), float32(prefill)
	tokens, attention := s.PrefillLoad(now)
	x[PrefillLoad], x[AttentionLoad] = float32(tokens), float32(attention/2)
	x[RecentTTFT] = positive(s.TTFT.Seconds())
	x[RecentITL] = positive(s.ITL.Seconds())
	x[StepTime] = positive(s.StepTime().Seconds())
}

func (x *Vector) scraped(l *fleet.Load, now time.Time) {
	x[Waiting], x[Running], x[KVUsage], x[KVTokens], x[Foreign], x[GaugeAge] = unknown, unknown, unknown, unknown, unknown, unknown
	if l.At.IsZero() {
		return
	}
	x[GaugeAge] = age(now, l.At)
	if l.Known.Has(fleet.KnowWaiting) {
		x[Waiting] = float32(l.Waiting)
	}
	if l.Known.Has(fleet.KnowRunning) {
		x[Running] = float32(l.Running)
	}
	if l.Known.Has(fleet.KnowKV) {
		x[KVUsage] = l.KVUsage
	}
	x[KVTokens] = positive(float64(l.KVTokens()))
	if n, ok := l.Foreign(); ok {
		x[Foreign] = float32(n)
	}
}

var unknown = float32(math.NaN())

// positive is v, or unknown where there is none.
func positive(v float64) float32 {
	if !(v > 0) {
		return unknown
	}
	return float32(v)
}

func age(now, then time.Time) float32 {
	if then.IsZero() {
		return oldest
	}
	return float32(min(max(now.Sub(then).Seconds(), 0), oldest))
}
