// Package oracle holds references that no router can have: what a policy could attain that knows the
// true lengths, the true caches and the physics of the engines, and how much of that a policy that
// does not know them captures.
//
// [Clairvoyant] decides one request at a time and does not know what comes. It is no upper bound: it
// may be beaten by whoever keeps capacity for what comes. [Hindsight] knows all arrivals and improves
// an assignment by search, on short traces; it shows what can be attained, and is no upper bound
// either. [Bound] is one: no assignment of the requests attains more. [Captured] sets a policy's gain
// over round robin in proportion to that of a reference.
package oracle
