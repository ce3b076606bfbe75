// Package foresight compares what a learner foretells with what really would have happened, on every
// endpoint, not only on the one that was picked.
//
// At every so many decisions of a simulated run each engine is cloned, the request is submitted to
// each clone, and each clone runs until the answer has ended: true state, true lengths, true cache,
// the engine's own physics, no later arrivals. One in five sets of clones lives on with the run and
// gets every later request that its engine gets: what really would have happened. Routing turns on differences between endpoints, so
// these are what is judged: per decision and pair of endpoints i, j
//
//	d = (log f_i - log f_j) - (log y_i - log y_j)
//
// with the forecasts f and the exact times y. What is common to all endpoints cancels out. That no later
// request arrives is of that kind only between endpoints under equal load: what is ranked by expects
// later requests, so ITL across classes is to be read from the clones that live on.
//
// Several learners see the same run: the first one's forecasts route it, the others, with parts
// switched off, learn from the same requests and are asked at the same decisions. So the cost of each
// part is paired with the whole.
//
// Step times of the engines are sums of terms like those of the learner's physical law, with knots
// where the law is straight. That flatters the law. The second scenario has engines that do not share
// its form: mixtures of experts, whose step times bend five-fold between one and 64 tokens, under
// noise.
package foresight
