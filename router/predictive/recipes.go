package predictive

import "github.com/presage-router/presage/router"

// The knobs of the rule: see [Weights].
var (
	knobStall   = router.Knob{Name: "stall", About: "weight of a second of prefill, per stream that it stalls", Default: 0.2, Low: 0, High: 10}
	knobDecode  = router.Knob{Name: "decode", About: "weight of a second of the request's own answer", Default: 0.2, Low: 0, High: 10}
	knobKV      = router.Knob{Name: "kv", About: "weight of a second of waiting for KV blocks", Default: 2, Low: 0, High: 10}
	knobAdapter = router.Knob{Name: "adapter", About: "weight of a second of an answer, where one has to end before the LoRA adapter fits", Default: 0.5, Low: 0, High: 10}
	knobSLO     = router.Knob{Name: "slo", About: "weight of a second at stake times the probability of missing the SLO", Default: 1, Low: 0, High: 10}
	knobYield   = router.Knob{Name: "yield", About: "how much more what it stalls, and less its own answer, counts for a request of negative priority", Default: 8, Low: 1, High: 100}
	knobMargin  = router.Knob{Name: "margin", About: "width of near ties, in standard deviations of differences between endpoints", Default: 1.25, Low: 0, High: 10}
)

// Recipes returns the policies of this package, by name.
func Recipes() router.Registry {
	return router.Registry{
		"predictive": {
			About: "least seconds added to the request and to everybody streaming there, near ties to the best-cached, SLOs priced",
			Knobs: []router.Knob{knobStall, knobDecode, knobKV, knobAdapter, knobSLO, knobYield, knobMargin},
			New: func(p router.Params) (router.Policy, error) {
				return New("predictive", Weights{
					KVWait: p.Knob(knobKV), Decode: p.Knob(knobDecode), Stall: p.Knob(knobStall), Adapter: p.Knob(knobAdapter), SLO: p.Knob(knobSLO), Yield: p.Knob(knobYield), Margin: p.Knob(knobMargin),
				}, p), nil
			},
		},
		"argmin-ttft": {
			About: "least foretold TTFT and nothing else: what predictors are usually used for",
			New: func(p router.Params) (router.Policy, error) {
				return New("argmin-ttft", Weights{KVWait: 1}, p), nil
			},
		},
	}
}
