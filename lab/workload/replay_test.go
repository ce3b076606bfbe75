package workload

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/presage-router/presage/lab/cluster"
)

// write makes a file of a test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replaying is a scenario of one traffic that replays a trace with the given keys.
func replaying(t *testing.T, keys string) *Scenario {
	t.Helper()
	s, err := Parse("replay", fmt.Appendf(nil, `
name: replay
about: a
expects: b
duration: 60s
fleet: [{gpu: H100, model: llama-3.1-8b}]
traffic:
  - class: recorded
    from: 10s
    max_tokens: 500
    trace: {%s}
`, keys))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replayed(t *testing.T, keys, path string, load float64) []cluster.Job {
	t.Helper()
	src, err := replaying(t, keys).Source(Options{Seed: 4, Trace: path, Load: load})
	if err != nil {
		t.Fatal(err)
	}
	return pull(t, src, math.MaxInt)
}

const azureTrace = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:00:10.0,200,900
2023-11-16 18:00:00.0,100,10
2023-11-16 18:00:04.0,300,30
2023-11-16 18:01:00.0,400,40
2023-11-16 18:04:00.0,500,50
`

func TestReplayOfArrivals(t *testing.T) {
	path := write(t, "azure.csv", azureTrace)
	for _, c := range []struct {
		keys string
		load float64
		want []string // seconds:prompt:output
	}{
		{"speed: 1", 1, []string{"10:100:10", "14:300:30", "20:200:500"}}, // the rest comes after the end
		{"speed: 2", 1, []string{"10:100:10", "12:300:30", "15:200:500", "40:400:40"}},
		{"speed: 1", 2, []string{"10:100:10", "12:300:30", "15:200:500", "40:400:40"}},
		{"rate: 0.1", 1, []string{"10:100:10", "10.667:300:30", "11.667:200:500", "20:400:40", "50:500:50"}}, // 4 gaps in 240 s, 6 times faster
		{"start: 3s, length: 57s", 1, []string{"10:300:30", "16:200:500"}},
	} {
		jobs := replayed(t, c.keys, path, c.load)
		var got []string
		for i, j := range jobs {
			got = append(got, fmt.Sprintf("%v:%d:%d", math.Round(j.At.Seconds()*1000)/1000, j.PromptTokens, j.OutputTokens))
			for k := range i {
				if common(jobs[k].Blocks, j.Blocks) != 0 {
					t.Errorf("%s: requests without known prefixes share blocks", c.keys)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s at load %v: %v, want %v", c.keys, c.load, got, c.want)
		}
	}
}

// TestReplayAnywhere: seeds begin at different times of the trace, and each replays all of it, in its
// order, once around.
func TestReplayAnywhere(t *testing.T) {
	path := write(t, "azure.csv", azureTrace)
	s := replaying(t, "speed: 60, anywhere: true")
	orders := map[string]bool{}
	for seed := range uint64(20) {
		src, err := s.Source(Options{Seed: seed, Trace: path})
		if err != nil {
			t.Fatal(err)
		}
		var order string
		var j cluster.Job
		var before time.Duration
		for src.Next(&j) {
			if j.At < before || j.At > 15*time.Second {
				t.Fatalf("seed %d: a request at %v after one at %v", seed, j.At, before)
			}
			before = j.At
			order += fmt.Sprint(j.PromptTokens/100, " ")
		}
		const twice = "1 3 2 4 5 1 3 2 4 5 "
		if len(order) != len(twice)/2 || !strings.Contains(twice, order) {
			t.Errorf("seed %d replays %s", seed, order)
		}
		orders[order] = true
	}
	if len(orders) < 3 {
		t.Errorf("20 seeds begin at %d places: %v", len(orders), orders)
	}
}

func TestReplayOfBlocks(t *testing.T) {
	path := write(t, "mooncake.jsonl", `{"timestamp": 0, "input_length": 1030, "output_length": 40, "hash_ids": [0, 1, 2]}
{"timestamp": 1000, "input_length": 1600, "output_length": 40, "hash_ids": [0, 1, 3, 4]}
{"timestamp": 2000, "input_length": 1030, "output_length": 40, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 512, "output_length": 40, "hash_ids": [16]}
`)
	jobs := replayed(t, "format: mooncake", path, 1)
	for _, c := range []struct{ a, b, want int }{{0, 1, 64}, {0, 2, 64}, {1, 2, 64}, {0, 3, 0}} {
		if n := common(jobs[c.a].Blocks, jobs[c.b].Blocks); n != c.want {
			t.Errorf("requests %d and %d share %d blocks of 16, want %d", c.a, c.b, n, c.want)
		}
	}
	if again := replayed(t, "format: mooncake", path, 1); common(jobs[1].Blocks, again[1].Blocks) != len(jobs[1].Blocks) {
		t.Error("a second source gives other blocks")
	}
}

const agentTrace = `{"session_id":"a","turn":0,"logged_at":"2026-04-23T17:00:00Z","model":"m","status":"success","input_length":1500,"output_length":40,"tools_hash":"t","msg_hash_ids":[1,2],"msg_chars":[1600,400]}
{"session_id":"b","turn":0,"logged_at":"2026-04-23T17:00:01Z","model":"m","status":"success","input_length":1600,"output_length":40,"tools_hash":"t","msg_hash_ids":[1,9],"msg_chars":[1600,800]}
{"session_id":"a","turn":1,"logged_at":"2026-04-23T17:00:07Z","model":"m","status":"success","input_length":1800,"output_length":40,"tools_hash":"t","msg_hash_ids":[1,2,3],"msg_chars":[1600,400,1000]}
{"session_id":"a","turn":2,"logged_at":"2026-04-23T17:00:09Z","model":"m","status":"success","input_length":1900,"output_length":40,"tools_hash":"u","msg_hash_ids":[1,2,3],"msg_chars":[1600,400,1000]}
`

func TestReplayOfSessions(t *testing.T) {
	path := write(t, "agents.jsonl", agentTrace)
	open := replayed(t, "format: agentic", path, 1)
	if len(open) != 4 || open[2].At != 17*time.Second || open[2].Then != nil {
		t.Errorf("as recorded: %d requests, the third at %s", len(open), open[2].At)
	}
	// 1500 tokens less 2000/4 of messages: 1000 hidden, 400 of message 1, 100 of message 2.
	for _, c := range []struct{ a, b, want int }{{0, 1, 1400 / 16}, {0, 2, 1500 / 16}, {2, 3, 0}} {
		if n := common(open[c.a].Blocks, open[c.b].Blocks); n != c.want {
			t.Errorf("requests %d and %d share %d blocks, want %d", c.a, c.b, n, c.want)
		}
	}
	waits := replayed(t, "format: agentic, waits: true", path, 1)
	if len(waits) != 2 || waits[0].Session != "a" || waits[1].Then != nil || waits[0].Then == nil {
		t.Fatalf("waiting: %+v", waits)
	}
	for i, want := range []time.Duration{7 * time.Second, 2 * time.Second} {
		var j cluster.Job
		if !waits[0].Then.Next(&j) || j.At != want || j.Session != "a" || j.PromptTokens != 1800+100*i {
			t.Errorf("turn %d: %d tokens after %s", i+1, j.PromptTokens, j.At)
		}
	}
	if waits[0].Then.Next(&cluster.Job{}) {
		t.Error("a fourth turn")
	}
}

// Copies have texts of their own, but for what sessions share.
func TestCopies(t *testing.T) {
	path := write(t, "agents.jsonl", agentTrace)
	jobs := replayed(t, "format: agentic, waits: true, copies: 50, speed: 1", path, 1)
	names := map[string]bool{}
	var a []cluster.Job
	for _, j := range jobs {
		names[j.Session] = true
		if j.Session == "a" || strings.HasPrefix(j.Session, "a-") {
			a = append(a, j)
			for range 2 {
				var next cluster.Job
				if !j.Then.Next(&next) || next.Session != j.Session {
					t.Fatalf("%s has not its three turns", j.Session)
				}
			}
		}
	}
	if len(names) != 100 || len(a) != 50 {
		t.Fatalf("%d sessions, %d of them copies of a", len(names), len(a))
	}
	if n := common(a[0].Blocks, a[1].Blocks); n != 1400/16 {
		t.Errorf("two copies share %d blocks, want those of the hidden text and message 1", n)
	}
	early := 0.0
	for _, j := range a {
		if j.At < 14500*time.Millisecond {
			early++
		}
	}
	within(t, "copies in the first half of the 9 s", early, 25, 4*math.Sqrt(50)/2)
}

// Sessions without hashes: a longer prompt continues what was said, a shorter one starts anew.
func TestReplayOfPlainSessions(t *testing.T) {
	path := write(t, "burst.csv", `Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
0,s,2,m,160,80,0,x
5,s,2,m,400,80,0,x
9,s,2,m,100,80,0,x
`)
	jobs := replayed(t, "waits: true", path, 1)
	var second, third cluster.Job
	if len(jobs) != 1 || !jobs[0].Then.Next(&second) || !jobs[0].Then.Next(&third) {
		t.Fatalf("%d sessions", len(jobs))
	}
	if common(jobs[0].Blocks, second.Blocks) != 15 || common(second.Blocks, third.Blocks) != 0 {
		t.Errorf("%d and %d blocks shared", common(jobs[0].Blocks, second.Blocks), common(second.Blocks, third.Blocks))
	}
	if second.At != 3*time.Second || third.At != 2*time.Second {
		t.Errorf("pauses %s and %s: the recorded gap less the recorded answer", second.At, third.At)
	}
}

func TestReplayWithoutClock(t *testing.T) {
	text := strings.Repeat(`{"kv_cache_percentage": 0, "input_token_length": 48, "num_request_waiting": 0, "num_request_running": 0, "actual_ttft_ms": 455, "actual_tpot_ms": 0}
{"kv_cache_percentage": 0, "input_token_length": 48, "num_request_waiting": 0, "num_request_running": 0, "actual_ttft_ms": 0, "actual_tpot_ms": 9}
`, 1000)
	path := write(t, "epp.jsonl", text)
	jobs := replayed(t, "rate: 10, output: 33", path, 1.5)
	within(t, "requests in 50 s", float64(len(jobs)), 750, 4*math.Sqrt(750))
	if jobs[0].PromptTokens != 48 || jobs[0].OutputTokens != 33 {
		t.Errorf("%+v", jobs[0])
	}
	fails(t, replaying(t, "output: 33"), path, "have no arrival times: give the scenario's trace a rate")
	fails(t, replaying(t, "rate: 10"), path, "no request says how long its answer was")
}

func fails(t *testing.T, s *Scenario, path, want string) {
	t.Helper()
	if _, err := s.Source(Options{Trace: path}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestReplayFaults(t *testing.T) {
	path := write(t, "azure.csv", azureTrace)
	fails(t, replaying(t, "where: over there"), "", "replay: recorded: replays a trace that is not shipped: give its file with --trace FILE (over there)")
	fails(t, replaying(t, "format: mooncake, where: over there"), path, "is a file of format azure: scenario replay replays mooncake (over there)")
	fails(t, replaying(t, "copies: 10000"), write(t, "long.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"+strings.Repeat("2023-11-16 18:00:10,1,1\n", 201)), "10000 copies make 2010000 requests")
	fails(t, replaying(t, "start: 1h"), path, "no request in the part replayed (start 1h0m0s")
	fails(t, replaying(t, "speed: 1"), path+"x", "no such file")
	runs := write(t, "measured.csv", "run,model,req_id,session_id,turn,arrival_s,prompt_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,queue_ms,inflight,inflight_prefill,status\n"+
		"r1,m,1,,,0,10,5,,,,,,,ok\nr2,m,1,,,0,20,5,,,,,,,ok\nr2,m,2,,,1,,5,,,,,,,ok\n")
	fails(t, replaying(t, "speed: 1"), runs, `holds 2 runs; choose one with run: "r1", "r2", …`)
	fails(t, replaying(t, "run: r3"), runs, "no request in the part replayed")
	if jobs := replayed(t, "run: r2", runs, 1); len(jobs) != 1 || jobs[0].PromptTokens != 20 {
		t.Errorf("run r2: %+v", jobs)
	}
	noPrompt := write(t, "measured.csv", "run,model,req_id,session_id,turn,arrival_s,prompt_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,queue_ms,inflight,inflight_prefill,status\nr1,m,1,,,0,,5,,,,,,,ok\n")
	fails(t, replaying(t, "speed: 1"), noPrompt, "no request says how long its prompt was")
	steps := write(t, "pods.csv", "run,t_s,running,pending,init\nr,5.5,4,1,2\n")
	fails(t, replaying(t, "speed: 1"), steps, "cannot be read as datasets.Row")
}

func servegenFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"x_rates.csv": "client,window_start_s,rate_rps,interarrival_cv,dist,param1,param2\n" +
			"1,0,30,1,Gamma,0.25,0.1\n1,600,90,1,Gamma,0.25,0.1\n2,0,10,1,Weibull,0.7,0.1\n2,600,10,1,,,\n3,0,1000,1,Gamma,1,1\n4,6000,7,1,Gamma,1,1\n",
		"x_tokens.csv": "client,window_start_s,in_p10,in_p50,in_p90,in_p99,out_p10,out_p50,out_p90,out_p99\n" +
			"1,0,10,10,10,10,5,5,5,5\n1,700,20,20,20,20,5,5,5,5\n2,0,100,200,300,400,50,50,50,50\n4,0,1,1,1,1,1,1,1,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "x_rates.csv")
}

// The clients with known lengths, each at its share of the rate wanted, with its own shape of gaps.
func TestServeGen(t *testing.T) {
	s := replaying(t, "rate: 50, start: 500s")
	s.Duration = 210 * time.Second // 200 s of replay: 100 s at 30+10, 100 s at 90+10
	src, err := s.Source(Options{Seed: 4, Trace: servegenFiles(t), Load: 2})
	if err != nil {
		t.Fatal(err)
	}
	jobs := pull(t, src, math.MaxInt)
	perClient := map[string][]float64{}
	for _, j := range jobs {
		perClient[j.Tenant] = append(perClient[j.Tenant], j.At.Seconds()-10)
		if j.Tenant == "recorded-1" && (j.PromptTokens != 10 || j.OutputTokens != 5) {
			t.Fatalf("client 1: %+v", j)
		}
	}
	if len(perClient) != 2 {
		t.Fatalf("%d clients", len(perClient))
	}
	// 14,000 expected at factor 1, 20,000 wanted.
	factor := 20000. / 14000
	one, two := perClient["recorded-1"], perClient["recorded-2"]
	within(t, "client 1, first window", between(one, 0, 100), 3000*factor, 5*2*math.Sqrt(3000*factor)) // CV 2
	within(t, "client 1, second window", between(one, 100, 200), 9000*factor, 5*2*math.Sqrt(9000*factor))
	within(t, "client 2", float64(len(two)), 2000*factor, 5*1.5*math.Sqrt(2000*factor))
	g := gaps(one[:int(between(one, 0, 100))])
	within(t, "cv of client 1", stat.StdDev(g, nil)/stat.Mean(g, nil), 2, .2)
	fails(t, replaying(t, "speed: 1"), servegenFiles(t), "give the scenario's trace a rate")
	fails(t, replaying(t, "rate: 1, start: 100h"), servegenFiles(t), "no arrivals between 100h0m0s and 100h0m50s")
	lonely := write(t, "y_rates.csv", "client,window_start_s,rate_rps,interarrival_cv,dist,param1,param2\n1,0,30,1,Gamma,0.25,0.1\n")
	fails(t, replaying(t, "rate: 1"), lonely, "y_tokens.csv: not there; ServeGen's lengths are wanted beside its rates")
}

// Every format with arrivals replays from its reference file.
func TestReplayOfReferenceData(t *testing.T) {
	dir := os.Getenv("PRESAGE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference data in %s: set PRESAGE_DATA", dir)
	}
	for file, keys := range map[string]string{
		"azure/azure2023_code.csv.gz": "speed: 1", "fixtures/valid/azure_2024.csv": "speed: 1", "fixtures/valid/azure_2025_multimodal.csv": "speed: 1",
		"mooncake/synthetic.jsonl.gz": "format: mooncake", "fixtures/valid/burstgpt_v1.csv": "speed: 100", "fixtures/valid/burstgpt_v3.csv": "rate: 2, waits: true",
		"agentic/appworld_test_normal_10.jsonl.gz": "waits: true, rate: 1", "epp-training-h200/sharegpt-h200.jsonl.gz": "rate: 5, output: 100",
		"fixtures/valid/lmbench_short.csv": "waits: true", "fixtures/valid/vllm_bench_new.json": "speed: 1", "fixtures/valid/inference_perf_per_request.json": "speed: 1",
		"fixtures/valid/guidellm.json": "speed: 1, output: 7", "fixtures/valid/otlp_vllm.jsonl": "speed: 1", "fixtures/valid/access_log.jsonl": "speed: 1000, output: 5",
		"vllm-engine-servingsim/measured.csv.gz": "run: servingsim-RTX4090-Llama-3.1-8B", "vllm-cpu/vllm-cpu-hetero.csv.gz": "speed: 1", "servegen/deepseek-r1_rates.csv.gz": "rate: 20",
	} {
		jobs := replayed(t, keys, filepath.Join(dir, file), 1)
		if len(jobs) == 0 {
			t.Errorf("%s: nothing replayed", file)
		}
		later := 0
		for _, j := range jobs {
			for i := 0; j.Then != nil && i < 1000; i++ {
				var next cluster.Job
				if !j.Then.Next(&next) {
					break
				}
				checkJob(t, &next)
				later++
			}
		}
		if waits := strings.Contains(keys, "waits"); waits != (later > 0) && !strings.Contains(file, "lmbench") {
			t.Errorf("%s: %d later requests", file, later)
		}
	}
}
