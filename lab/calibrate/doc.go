// Package calibrate holds simulated engines against measurements: it fits step-time coefficients to
// recorded passes and requests, replays what was measured, and judges the errors.
//
// Fitting is of two kinds. Where steps were recorded ([FitPasses]), the step-time form is linear in its
// coefficients and a non-negative regression finds them. Where only requests were ([FitRequests]), an
// engine is simulated with the recorded arrivals and lengths, and a pattern search moves the
// coefficients until the simulated latencies are the recorded ones. Rows that a fit saw never judge it.
package calibrate
