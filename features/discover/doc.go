// Package discover finds the endpoints of a fleet: in a watched file ([File]) or in DNS ([DNS]).
//
// A [Source] has one method, which sends the whole set each time it changes; [Follow] gives the sets
// to a fleet. So the fleet is a function of what is there now, not of the order of events: whatever
// happened before, the set converges to that of a fresh start.
//
// What cannot be read never empties a fleet: a bad file, or a name server that fails, is reported
// and leaves the set in force. An endpoint that leaves takes no new requests, and its open ones stay
// accounted until they end (see [fleet.Fleet.Sync]); with drain set it stays in the set for that.
package discover
