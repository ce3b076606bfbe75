// Package sensitivity plays one policy with one thing wrong at a time and says what that costs:
// pages and ledgers that are late, forecasts that err, labels that come late, lengths of answers that
// are known, prefix indexes that are mistaken, several routers that do not know of each other, a
// predictor that learns less or not at all, terms of the rule switched off.
//
// A [Dimension] is one such thing, a [Setting] is how much of it. Every run of a setting has the
// arrivals of the run without it, so differences are paired by seed. The clusters are not told: what
// is wrong is put between the router and what it sees.
package sensitivity
