package workload

import (
	"slices"
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

	// Anywhere begins the replay at a time of the trace that the seed draws, going on at the trace's
	// beginning after its end. Without it all seeds replay the same requests and differ in nothing but
	// noise, so that intervals over them say nothing about other traffic.
	Anywhere bool

	Output Dist // answer lengths where the trace does not know them
}

func parseTrace(v *node) *Trace {
	if !v.mapping() {
		return nil
	}
	t := &Trace{
		File: v.key("file").text(), Format: datasets.Format(v.key("format").text()), Where: v.key("where").text(),
		Speed: v.key("speed").number(1e-6, 1e6), Rate: v.key("rate").number(1e-6, maxRate),
		From: v.key("start").duration(), Length: v.key("length").duration(), Run: v.key("run").text(),
		Copies: v.key("copies").count(1, 10000), Waits: v.key("waits").flag(), Anywhere: v.key("anywhere").flag(), Output: parseDist(v.key("output"), 1, maxTokens),
	}
	if t.Speed > 0 && t.Rate > 0 {
		v.fail("has both speed and rate; give one")
	}
	if t.Anywhere && t.Waits {
		v.fail("has both anywhere and waits: sessions that wait cannot begin in their middle")
	}
	if f := v.key("format"); f.there() && !slices.Contains(replayable(), t.Format) {
		names := make([]string, 0, 16)
		for _, f := range replayable() {
			names = append(names, string(f))
		}
		f.fail("%q cannot be replayed; %s", t.Format, suggest(string(t.Format), names))
	}
	v.end()
	return t
}

// replayable are the formats that hold arrivals.
func replayable() []datasets.Format {
	return []datasets.Format{
		datasets.Azure, datasets.Mooncake, datasets.BurstGPT, datasets.ServeGenRates, datasets.Agentic, datasets.EPP, datasets.LMBench,
		datasets.VLLMBench, datasets.InferencePerf, datasets.GuideLLM, datasets.OTLP, datasets.AccessLog, datasets.Measured, datasets.VLLMCPU,
	}
}
