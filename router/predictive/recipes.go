package predictive

import "github.com/presage-router/presage/router"

// Recipes returns the policies of this package, by name.
func Recipes() router.Registry {
	make := func(name string, w Weights) func(router.Params) (router.Policy, error) {
		return func(p router.Params) (router.Policy, error) { return New(name, w, p), nil }
	}
	blind := Defaults()
	blind.SLO = 0
	return router.Registry{
		"predictive":       {About: "least seconds added to the request and to everybody streaming there, near ties to the best-cached, SLOs priced", New: make("predictive", Defaults())},
		"predictive-blind": {About: "the same without a look at SLOs", New: make("predictive-blind", blind)},
		"argmin-ttft":      {About: "least foretold TTFT and nothing else: what predictors are usually used for", New: make("argmin-ttft", Weights{KVWait: 1})},
	}
}
