package workload

import (
	"time"

	"github.com/presage-router/presage/datasets"
)

// Trace replays the requests of a recorded file (see package datasets) as arrivals.
type Trace struct {
	File   string          // empty: given by [Options].Trace
	Format datasets.Format // that the file must have; empty: any with requests, or ServeGen rates
	Where  string          // where such a file can be got, for messages

	Speed float64 // how much faster than recorded; 0: 1
	Rate  float64 // requests per second to bring the trace to, instead of Speed; 0: as recorded

	From   time.Duration // beginning of the part that is replayed, on the trace's clock
	Length time.Duration // its length; 0: to the end
	Run    string        // run to replay, of a file that holds several

	// Copies replays every session so many times, at random times; 0: once. Rate is that of one copy.
	Copies int

	// Waits makes sessions of the trace wait: a request is sent when the answer to the one before has
	// come and the recorded gap between them has passed again. Else they come when they came.
	Waits bool

	Output Dist // answer lengths where the trace does not know them
}
