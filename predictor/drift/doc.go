// Package drift notices that an endpoint no longer behaves as predicted.
//
// A [Detector] watches the log residuals log(actual/predicted) of one endpoint with the two-sided
// cumulative sum of Page, "Continuous Inspection Schemes", Biometrika 41, 1954: evidence for a shift
// adds up from one observation to the next, so that a small lasting change is found as surely as a
// large one. A [Class] tells one endpoint's trouble from a change of all: an upgrade of the engine,
// another model.
//
// Residuals are divided by their own spread, a running median of their size, so that no scale needs to
// be known; heavy tails are clipped. How rare false alarms are follows from the slack k and the limit
// h. For independent normal residuals the mean number of observations between alarms of one side is
// about (e^x - x - 1)/(2k^2), x = 2k(h+1.166) (Siegmund, "Sequential Analysis", 1985): with
// k = 0.25, two sides and h = 8 that is 370, and 21,000 with h = 16.
package drift
