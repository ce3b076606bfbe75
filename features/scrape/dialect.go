package scrape

import "strings"

// metric is what a series means, whatever its engine calls it.
type metric uint8

const (
	unwanted metric = iota
	waiting
	running
	kvUsage
	kvUsageOld // an older name; counts where kvUsage is absent
	queries
	queriesOld
	hits
	hitsOld
	prompt
	generated
	preemptions
	blockSize
	blocks
	numMetrics

	cacheInfo // block size and count in labels
	loraInfo  // adapters in labels, the time of the state as value
)

// role is what a label means for telling series apart.
type role uint8

const (
	noRole   role = iota // a replica's name (tp_rank, instance, pid): the same thing said again
	modelOf              // the model served
	summed               // parts of a whole: ranks with their own scheduler, kinds of requests
	priority             // a part beside the whole: only the series where it is empty counts
	blockSizeOf
	blocksOf
	maxLoRA
	runningLoRA
	waitingLoRA
)

// dialect is how one engine writes its page.
type dialect struct {
	engine string    // its name as fleet.Endpoint.Engine
	prefix string    // of all its metric names
	path   string    // where the page usually is
	starts [256]bool // first bytes of the wanted names behind the prefix: rules out most lines at once
	metric func(name []byte) metric
	label  func(name []byte) role
	// queriesArePrompt: every prompt token is a prefix-cache query; there is no counter of its own.
	queriesArePrompt bool
}

// dialects returns those that may be on an engine's page: the engine's own, or all where the
// engine is not known; the page then says by its names which one it is.
func dialects(engine string) []*dialect {
	all := []*dialect{&vllm, &sglang, &trtllm}
	for i, d := range all {
		if d.engine == strings.ToLower(engine) {
			return all[i : i+1]
		}
	}
	return all
}

// Path returns where an engine's metrics page usually is.
func Path(engine string) string {
	if d := dialects(engine); len(d) == 1 {
		return d[0].path
	}
	return vllm.path
}

// limits of plausible values; a value outside is refused, not clamped.
const (
	maxRequests = 1 << 20
	maxBlocks   = 1 << 25
	maxTokens   = 1 << 20 // in one block
	maxCounter  = 1e18
	usageSlack  = 1e-6 // rounding of engines around 0 and 1
)

// plausible checks a value and returns it as it shall be used.
func plausible(m metric, v float64) (float64, bool) {
	var top float64
	switch m {
	case waiting, running:
		top = maxRequests
	case kvUsage, kvUsageOld:
		if v >= -usageSlack && v <= 1+usageSlack { // a percentage such as 87 is refused: nobody can tell it from a fault
			return min(max(v, 0), 1), true
		}
		return 0, false
	case blockSize:
		return v, v >= 1 && v <= maxTokens && v == float64(int64(v))
	case blocks:
		top = maxBlocks
	default:
		return v, v >= 0 && v <= maxCounter
	}
	return v, v >= 0 && v <= top && v == float64(int64(v))
}
