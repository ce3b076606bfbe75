package baseline

import "github.com/presage-router/presage/router"

// Policies returns every policy of this package, by name.
func Policies() router.Registry {
	return router.Registry{
		"round-robin":   {About: "strict rotation over ready endpoints", New: simple(NewRoundRobin)},
		"least-request": {About: "fewest requests in flight, a random one among equals", New: simple(NewLeastRequest)},
		"random":        {About: "uniformly at random", New: simple(NewRandom)},
		"p2c":           {About: "two distinct random endpoints, the one with fewer requests in flight", New: simple(NewTwoChoices)},

		"weighted":          {About: "prefix 3, queue 2, KV 2, highest sum: llm-d-router's scorers", New: weighted("weighted")},
		"llmd-weighted":     {About: "the same as weighted", New: weighted("llmd-weighted")},
		"llmd-sticky-token": {About: "llm-d-router: endpoints holding 80 % of the prompt unless slower by 18 s, then least uncached tokens", Knobs: stickyKnobs, New: simple(NewStickyToken)},
		"llmd-active":       {About: "llm-d-router: the same stickiness, then fewest requests in flight", Knobs: stickyKnobs, New: simple(NewStickyActive)},
		"llmd-predicted":    {About: "llm-d-router: SLO headroom of forecasts in tiers, weighted random draw", Knobs: predictedKnobs, New: simple(NewLLMDPredicted)},
		"dynamo-linear":     {About: "Dynamo: prefill blocks less cached ones, plus blocks in decode", Knobs: []router.Knob{dynamoCredit, dynamoScale, dynamoRequest}, New: simple(NewDynamoLinear)},
		"lmetric":           {About: "LMetric: uncached prefill tokens times batch size", New: simple(NewLMetric)},
		"smg-cache-aware":   {About: "SMG: longest match above 30 % unless load is uneven, else least load", Knobs: []router.Knob{smgMatch, smgAbsolute, smgRelative}, New: simple(NewSMGCacheAware)},
		"smg-least-load":    {About: "SMG: seconds of uncached tokens ahead plus a price for a full KV cache", Knobs: []router.Knob{smgLambda}, New: simple(NewSMGLeastLoad)},
		"aibrix-prefix":     {About: "AIBrix: longest match within one sigma of mean load, else least request", Knobs: []router.Knob{aibrixImbalance, aibrixSigmas}, New: simple(NewAIBrixPrefix)},

		"gorgo-2d": {About: "GORGO: own and queued uncached tokens, at the ms per token that regression finds", Knobs: []router.Knob{gorgoQueued}, New: simple(NewGorgo2D)},

		"always-busiest": {About: "negative control: most requests in flight", New: simple(NewAlwaysBusiest)},
	}
}

// simple adapts a constructor that cannot fail.
func simple[P router.Policy](n func(router.Params) P) func(router.Params) (router.Policy, error) {
	return func(p router.Params) (router.Policy, error) { return n(p), nil }
}

// weighted makes llm-d-router's profile under a name: its defaults are those of the scorers.
func weighted(name string) func(router.Params) (router.Policy, error) {
	return func(p router.Params) (router.Policy, error) {
		return router.NewProfile(name, router.ProfileSpec{
			Scorers:   map[string]*float64{"prefix": nil, "queue": nil, "kv": nil},
			Fallbacks: p.Fallbacks,
		})
	}
}
