package datasets

// Record is a type that files hold records of.
type Record interface {
	Row | Rate | Lengths | Sample | Pass | Step | Aggregate | Stage | Profile | Cost | Pods
}

// Rate is the arrival process of one client during one window of a ServeGen workload.
type Rate struct {
	Line   int
	Client int
	Start  float64 // seconds, of the window
	RPS    float64 // mean requests per second in the window
	CV     float64 // coefficient of variation of the gaps; NaN: unknown
	Dist   string  // family fitted to the gaps (Gamma, Weibull, Exponential); empty: none
	Param1 float64 // of the family: shape; NaN: none
	Param2 float64 // of the family: scale, seconds; NaN: none
}

// Lengths is the distribution of prompt and output tokens of one client during one window of a
// ServeGen workload: the quantiles .1, .5, .9 and .99.
type Lengths struct {
	Line   int
	Client int
	Start  float64 // seconds, of the window
	In     [4]float64
	Out    [4]float64
}

// Sample is the state of an engine at one instant.
type Sample struct {
	Line      int
	Run       string
	Endpoint  string
	T         float64 // seconds since the first sample of the run
	PromptTPS float64 // prompt tokens per second
	OutputTPS float64 // generated tokens per second
	Running   int
	Waiting   int
	Swapped   int     // Unknown in engines that do not swap
	KV        float64 // share of KV blocks in use, 0..1
	HitShare  float64 // share of prompt tokens found in the prefix cache, 0..1; NaN: unknown
}

// Pass is one engine iteration with what was in its batch and in its queue (forward-pass metrics).
type Pass struct {
	Line    int
	Run     string
	Model   string
	Phase   string // context, decode or mixed, as the file says
	Segment string // part of the recording: warm-up, sweep, ...
	Counter int
	Rank    int // data-parallel rank

	PrefillTokens   int
	PrefillRequests int
	PrefillKV       int     // tokens before the chunks of this pass, summed
	PrefillVar      float64 // variance of the chunks' lengths
	DecodeRequests  int
	DecodeKV        int // context tokens of the decoding requests, summed
	DecodeVar       float64

	QueuedPrefills      int
	QueuedPrefillTokens int
	QueuedPrefillVar    float64
	QueuedDecodes       int
	QueuedDecodeKV      int
	QueuedDecodeVar     float64

	Latency float64 // seconds
}

// Step is one scheduler step of a vLLM engine. Files sample steps, so they are not consecutive.
type Step struct {
	Line          int
	Run           string
	ID            int
	T             float64 // seconds since the start of the run
	Duration      float64 // seconds, of the scheduler's own work
	Cycle         float64 // seconds between this step's start and the next's; NaN: unknown
	Running       int
	Waiting       int
	PrefillReqs   int
	DecodeReqs    int
	Tokens        int // scheduled
	PrefillTokens int
	DecodeTokens  int
	Finished      int
	Preempted     int
	KV            float64 // share of KV blocks in use, 0..1
	Blocks        int
	FreeBlocks    int
	TP            int
}

// Aggregate is one measured operating point of a closed-loop benchmark: fixed lengths, fixed
// concurrency.
type Aggregate struct {
	Line        int
	Measured    string // date, as the file gives it; empty: unknown
	Concurrency int
	Backend     string
	Version     string
	Model       string
	System      string // GPU system
	Precision   string
	Mode        string // agg, disagg
	ISL, OSL    int
	Batch       int
	TP, PP, DP  int
	MoETP       int
	MoEEP       int
	Prefills    int // prefill workers, Unknown when aggregated
	Decodes     int
	TTFT        float64 // seconds, mean
	TPOT        float64 // seconds, mean
}

// Stage is the summary of one stage of a load test at a constant rate.
type Stage struct {
	Line      int
	Config    string
	Stage     int
	Count     int
	Requested float64 // requests per second
	Achieved  float64
	OK        int
	Failed    int
	Prompt    float64 // mean tokens
	Output    float64
	TTFT      Summary
	ITL       Summary
	E2E       Summary
}

// Summary is a distribution in seconds; fields are NaN where unknown.
type Summary struct {
	Mean, P50, P90, P99 float64
}

// Profile is one timed batch of a performance model's measurements.
type Profile struct {
	Line     int
	Model    string
	Hardware string
	Prompt   int // tokens
	Batch    int
	Output   int     // tokens
	Prefill  float64 // seconds
	Token    float64 // seconds per token
	E2E      float64 // seconds
	TP       int
}

// Cost is one stress run of a latency-prediction sidecar over HTTP.
type Cost struct {
	Line                int
	Model               string // kind of regressor
	TotalQPS            float64
	Batch               int
	Target, Actual      float64 // requests per second
	OKShare             float64 // 0..1
	Mean, P50, P95, P99 float64 // seconds
}

// Pods counts the replicas of an autoscaled deployment at one instant.
type Pods struct {
	Line    int
	Run     string
	T       float64 // seconds
	Running int
	Pending int
	Init    int
}
