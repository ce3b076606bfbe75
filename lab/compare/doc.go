// Package compare plays scenarios under several policies on the same arrivals and says what differs,
// with intervals over seeds.
//
// One run is one policy on one scenario at one load with one seed. Runs with the same seed have the
// same requests with the same lengths, prefixes and sessions, so differences are paired. Requests
// that were refused, failed or never ended count as missed.
package compare
