// Package admin is what operators see of a running router: the metrics page, why a decision was
// made, and the endpoints with their load and ledger.
//
// [Ring] keeps recent decisions in bounded memory, [Metrics] counts, [New] serves both over HTTP,
// and [Client] is the other end, for the command line. Nothing here holds a prompt or an answer.
package admin
