// Package predictive ranks endpoints by the seconds that a placement costs: to the request until its
// first token, to the request while its answer streams, and to everybody already streaming there.
// Among endpoints whose costs cannot be told apart, given how well differences between endpoints are
// foretold, the one that holds most of the prompt is taken.
//
// The rule has one term per file, all in seconds and additive, so that an explanation is the
// decision. It replaces what heuristics tune by hand: how long to stick to a warm endpoint follows
// from what a miss costs the streams there, and when to spread from what they suffer.
package predictive
