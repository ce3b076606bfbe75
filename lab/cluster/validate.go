package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// Check is one comparison of simulated engines with measurements of real ones.
type Check struct {
	Name  string
	Rows  int     // measurements compared
	Error float64 // relative; see the name for which
	Limit float64 // what is good enough
	OK    bool
}

func check(name string, rows int, err, limit float64) Check {
	return Check{Name: name, Rows: rows, Error: err, Limit: limit, OK: rows > 0 && err <= limit}
}

// Validate compares simulated engines with the measurements in a data directory. Measurements that
// are not there are left out; none at all is an error. Nothing here is tuned on what it is compared
// with but the fits of step times, which are judged on the passes they have not seen.
func Validate(dir string) ([]Check, error) {
	table, err := engine.Builtin()
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, f := range []func(string, engine.Table) ([]Check, error){validateTPOT, validateColdTTFT, validateBlocks, validateSteps} {
		c, err := f(dir, table)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		checks = append(checks, c...)
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("%s: holds no measurement to compare with", dir)
	}
	return checks, nil
}

// validateTPOT replays closed-loop benchmarks: so many users, each with one request of fixed lengths
// open. Compared is the mean time per output token, by the mean of relative errors.
func validateTPOT(dir string, table engine.Table) ([]Check, error) {
	rows, _, err := datasets.Load[datasets.Aggregate](filepath.Join(dir, "silicon-aggregates", "silicon.csv.gz"))
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, v := range []struct {
		model, precision, system string // of the file
		gpu, name, dtype         string // of the table
		tp, osl                  int    // width; longest answers compared, 0: all
		profile                  engine.Profile
		limit                    float64
	}{
		{"Qwen3-32B", "", "h100_sxm", "H100", "qwen3-32b", "bfloat16", 2, 0, engine.Sync(), 0.05},
		{"Llama-3.1-70B", "fp8", "h100_sxm", "H100", "llama-3.3-70b", "fp8", 4, 1024, engine.Async(), 0.05},
		{"Llama-3.1-70B", "fp8", "h200_sxm", "H200", "llama-3.3-70b", "fp8", 2, 1024, engine.Async(), 0.05},
		{"Llama-3.1-70B", "fp8", "b200_sxm", "B200", "llama-3.3-70b", "fp8", 1, 1024, engine.Async(), 0.12},
	} {
		coefs, err := table.Find(v.gpu, v.name, v.tp, v.dtype)
		if err != nil {
			return nil, err
		}
		n, sum := 0, 0.0
		for i := range rows {
			r := &rows[i]
			if r.Backend != "vllm" || r.Mode != "agg" || r.System != v.system || r.TP != v.tp || r.Precision != v.precision ||
				!strings.HasSuffix(r.Model, v.model) || v.osl > 0 && r.OSL > v.osl || !datasets.Known(r.TPOT) {
				continue
			}
			tpot, err := closedLoop(engine.Config{Coefs: *coefs, Profile: v.profile}, r)
			if err != nil {
				return nil, err
			}
			n++
			sum += math.Abs(tpot/r.TPOT - 1)
		}
		checks = append(checks, check(fmt.Sprintf("tpot %s %s, %s profile, mean error", v.gpu, coefs.Model, v.profile.Name), n, sum/float64(max(n, 1)), v.limit))
	}
	return checks, nil
}

// closedLoop is the mean TPOT, in seconds, once the users, who start spread over one request's time,
// have each ended a few.
func closedLoop(cfg engine.Config, r *datasets.Aggregate) (float64, error) {
	users := r.Concurrency
	if users < 1 {
		users = r.Batch
	}
	cycle := time.Duration(r.TPOT * float64(r.OSL) * 1.2e9)
	rng := rand.New(rand.NewPCG(1, 1))
	src := &Slice{}
	for range users {
		j := Job{PromptTokens: r.ISL, OutputTokens: r.OSL}
		j.Then = again{j}
		j.At = time.Duration(rng.Float64() * float64(cycle))
		src.Jobs = append(src.Jobs, j)
	}
	slices.SortFunc(src.Jobs, func(a, b Job) int { return int(a.At - b.At) })
	sum, n := 0.0, 0
	_, err := Run(Config{
		Nodes: []Node{{Engine: cfg}}, Policy: baseline.NewRoundRobin(router.Params{}), NoPrefixes: true, Scrape: -1, Progress: 1 << 16, Duration: 9 * cycle,
	}, src, func(r *Record) {
		if r.ITL > 0 && r.Sent > 2*cycle && r.Sent < 7*cycle {
			sum += r.ITL.Seconds()
			n++
		}
	})
	return sum / float64(max(n, 1)), err
}

// again yields one job for ever.
type again struct{ job Job }

// Next implements [Source].
func (a again) Next(j *Job) bool {
	*j = a.job
	return true
}

// validateColdTTFT compares the first token of a long prompt on an idle engine with an empty cache.
func validateColdTTFT(dir string, table engine.Table) ([]Check, error) {
	rows, _, err := datasets.Load[datasets.Row](filepath.Join(dir, "aibrix-bench-a100", "measured.csv.gz"))
	if err != nil {
		return nil, err
	}
	coefs, err := table.Find("A100", "llama-3.1-8b", 1, "")
	if err != nil {
		return nil, err
	}
	var measured []float64
	prompt := 0
	for i := range rows {
		if r := &rows[i]; r.Run == "aibrix-v0.2.1-naive-q0.1" && datasets.Known(r.TTFT) {
			measured = append(measured, r.TTFT)
			prompt = r.Prompt
		}
	}
	if len(measured) == 0 {
		return nil, nil
	}
	slices.Sort(measured)
	var ttft float64
	_, err = Run(Config{Nodes: []Node{{Engine: engine.Config{Coefs: *coefs}}}, Policy: baseline.NewRoundRobin(router.Params{}), Scrape: -1},
		&Slice{Jobs: []Job{{PromptTokens: prompt, OutputTokens: 1}}}, func(r *Record) { ttft = r.TTFT.Seconds() })
	if err != nil {
		return nil, err
	}
	return []Check{check("ttft A100 llama-3.1-8b, cold prompt of 21k tokens", len(measured), math.Abs(ttft/measured[len(measured)/2]-1), 0.05)}, nil
}
