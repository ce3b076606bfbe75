// Package report writes what a comparison of policies showed as one HTML file that needs nothing
// else: no request leaves it, its figures are inside it as JSON, and it prints to three pages.
//
// A [Comparison] goes in, of simulated runs or, with its Live part, of live traffic. Parts that a
// comparison lacks are answered by a sentence that says why. The verdict is one of six sentences, and
// the rules that forbid one are functions of this package: [Judge] applies them all.
package report
