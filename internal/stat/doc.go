// Package stat is the statistics of evaluations and comparisons: quantiles, intervals of means and of
// paired differences, the block bootstrap, monotone regression and the errors of forecasts.
//
// Functions of no data return NaN, never zero. NaN among the data gives NaN. Nothing here keeps or
// changes its arguments, except where it says so.
package stat
