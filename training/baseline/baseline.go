// Package baseline holds models to compare the online learner with: what one would try first. They
// are fitted in batches, on the rows whose labels are known, and know nothing of queues or engines
// beyond the features.
//
// Random forests and the like of github.com/sjwhitworth/golearn are not among them: the tree and the
// linear model here are a page each, and the boosted ones are those of package gbdt, whose results
// are checked against LightGBM there.
package baseline

import (
	"math"

	"github.com/presage-router/presage/features"
)

// Row is one labelled request; Y, in seconds, is above 0.
type Row struct {
	X *features.Vector
	Y float64
}

// Model is fitted again and again. It is not safe for concurrent use.
type Model interface {
	// Fit replaces what was learned by what the rows say. It keeps none of them.
	Fit(rows []Row) error
	// Predict is the forecast in seconds, above 0. Fit must have succeeded once.
	Predict(x *features.Vector) float64
}

// How models are refitted: first at Least labels, then after Every further ones, on the last Rows.
const (
	Least = 50
	Every = 250
	Rows  = 2000
)

// All returns one new model of each kind by name.
func All() map[string]Model {
	return map[string]Model{"linear": new(Linear), "tree": new(Tree), "boosted": new(Boosted)}
}

// shortest is the least forecast.
const shortest = 1e-4

// bounded keeps a forecast within what is positive and finite.
func bounded(seconds float64) float64 {
	if !(seconds > shortest) {
		return shortest
	}
	return math.Min(seconds, 86400)
}
