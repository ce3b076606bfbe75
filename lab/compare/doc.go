// Package compare plays scenarios under several policies on the same arrivals and says what differs,
// with intervals over seeds.
//
// One run is one policy on one scenario at one load with one seed. Runs with the same seed have the
// same requests with the same lengths, prefixes and sessions, so differences are paired. Requests
// that were refused, failed or never ended count as missed.
//
// An [Arena] makes runs, [Runs] keeps them so that none is made twice. A [Match] compares one policy with
// others and ends in an [Outcome]: figures, paired differences, sustained loads, and whether a control
// lost as it has to. A [Contest] holds one policy against whichever of the others is best, chosen on other
// seeds; its cells, and its knees, are judged by gates. A [Study] is a plain grid of runs.
package compare
