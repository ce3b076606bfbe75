// Package training fits latency models to logged requests, offline: the learner that serves learns
// from a log in order of time, is judged on the last quarter of it, and is kept if it foretells better
// than the champion.
//
// Nothing is learned before it could be known: a TTFT when the first token came, the rest at the end
// of the request. Forecasts are judged by what was known at the decision. Both the new model and the
// champion go on learning during the judged quarter, as they would while serving, so that what counts
// is what the model brings along.
package training
