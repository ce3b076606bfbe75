package scrape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

const gauges = fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scan reads a page of engine vllm for model demo.
func scan(t *testing.T, page string) (fleet.Load, Report) {
	t.Helper()
	l, r, err := scanCut([]byte(page), "", "demo", 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	return l, r
}

// TestVLLM032Page reads a page of a real vLLM 0.32 after one request of 11 tokens with 5 answered.
func TestVLLM032Page(t *testing.T) {
	page := read(t, "vllm_0_32_metrics.txt")
	want := fleet.Load{
		Known:     gauges | fleet.KnowBlocks | fleet.KnowPrefix | fleet.KnowTokens | fleet.KnowPreemptions,
		BlockSize: 128, Blocks: 2048, Queries: 11, Prompt: 11, Generated: 5,
	}
	for _, engine := range []string{"vllm", "VLLM", ""} {
		for _, cut := range []int{0, 1, 7, 1000, 4096} {
			for _, name := range []string{"tiny", "", "what-the-pool-calls-it"} {
				got, r, err := scanCut(page, engine, name, cut)
				if err != nil || r != (Report{}) {
					t.Fatalf("engine %q, model %q, pieces of %d: %+v, %v", engine, name, cut, r, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("engine %q, model %q, pieces of %d (-want +got):\n%s", engine, name, cut, diff)
				}
			}
		}
	}
	if ref, usable, ok := oracle(page, "tiny"); !ok || !usable || !cmp.Equal(want, ref) {
		t.Errorf("the reference parser says otherwise: %s", cmp.Diff(want, ref))
	}
}

// TestOldPages reads the names of vLLM 0.6 and of the first V1 releases.
func TestOldPages(t *testing.T) {
	v06 := `vllm:cache_config_info{block_size="16",cache_dtype="auto",num_cpu_blocks="9362",num_gpu_blocks="27468"} 1.0
vllm:num_requests_running{model_name="demo"} 3.0
vllm:num_requests_swapped{model_name="demo"} 0.0
vllm:num_requests_waiting{model_name="demo"} 2.0
vllm:gpu_cache_usage_perc{model_name="demo"} 0.25
vllm:cpu_cache_usage_perc{model_name="demo"} 0.75
vllm:gpu_prefix_cache_hit_rate{model_name="demo"} -1.0
vllm:num_preemptions_total{model_name="demo"} 1.0
vllm:prompt_tokens_total{model_name="demo"} 900.0
vllm:generation_tokens_total{model_name="demo"} 80.0
`
	want := fleet.Load{
		Known:   gauges | fleet.KnowBlocks | fleet.KnowTokens | fleet.KnowPreemptions,
		Running: 3, Waiting: 2, KVUsage: .25, KVMax: .25, BlockSize: 16, Blocks: 27468, Preemptions: 1, Prompt: 900, Generated: 80,
	}
	got, _ := scan(t, v06)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("0.6 (-want +got):\n%s", diff)
	}
	got, _ = scan(t, v06+`vllm:gpu_prefix_cache_queries_total{model_name="demo"} 40.0
vllm:gpu_prefix_cache_hits_total{model_name="demo"} 10.0
`)
	want.Known |= fleet.KnowPrefix
	want.Queries, want.Hits = 40, 10
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first V1 (-want +got):\n%s", diff)
	}
}

// TestSGLangPage: ranks of one tensor-parallel group repeat what the group says, data-parallel ranks
// add up, and of priorities only the whole counts.
func TestSGLangPage(t *testing.T) {
	page := `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="demo",pp_rank="0",priority="",tp_rank="0"} 14.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="demo",pp_rank="0",priority="0",tp_rank="0"} 9.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="demo",pp_rank="0",priority="-1",tp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="demo",pp_rank="0",priority="",tp_rank="1"} 14.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="demo",pp_rank="0",priority="",tp_rank="2"} 2.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="demo",pp_rank="0",priority="",tp_rank="3"} 2.0
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="demo",tp_rank="0"} 3.0
sglang:num_queue_reqs{dp_rank="1",engine_type="unified",model_name="demo",tp_rank="2"} 4.0
sglang:token_usage{dp_rank="0",model_name="demo",tp_rank="0"} 0.5
sglang:token_usage{dp_rank="1",model_name="demo",tp_rank="2"} 0.1
sglang:page_size{dp_rank="0",model_name="demo",tp_rank="0"} 16
sglang:page_size{dp_rank="1",model_name="demo",tp_rank="2"} 16
sglang:num_pages{dp_rank="0",model_name="demo",tp_rank="0"} 1000
sglang:num_pages{dp_rank="1",model_name="demo",tp_rank="2"} 1000
sglang:prompt_tokens_total{model_name="demo",is_streaming="true"} 500.0
sglang:prompt_tokens_total{model_name="demo",is_streaming="false"} 100.0
sglang:generation_tokens_total{model_name="demo",is_streaming="true"} 50.0
sglang:generation_tokens_total{model_name="demo",is_streaming="false"} 10.0
sglang:cached_tokens_total{cache_source="device",model_name="demo"} 200.0
sglang:cached_tokens_total{cache_source="host",model_name="demo"} 40.0
sglang:fwd_occupancy{model_name="demo"} NaN
`
	want := fleet.Load{
		Known:   gauges | fleet.KnowBlocks | fleet.KnowPrefix | fleet.KnowTokens,
		Running: 16, Waiting: 7, KVUsage: .3, KVMax: .5, BlockSize: 16, Blocks: 2000,
		Queries: 600, Hits: 240, Prompt: 600, Generated: 60,
	}
	got, r := scan(t, page)
	if diff := cmp.Diff(want, got); diff != "" || r != (Report{}) {
		t.Fatalf("%+v (-want +got):\n%s", r, diff)
	}
	shuffled(t, page, func(page string) {
		got, _ := scan(t, page)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order of lines matters (-want +got):\n%s\n%s", diff, page)
		}
	})
	older, _ := scan(t, `sglang:cache_config_info{model_name="demo",page_size="1",num_pages="65536"} 1`+"\n")
	if older.BlockSize != 1 || older.Blocks != 65536 {
		t.Errorf("capacity in labels: %+v", older)
	}
}

// TestTRTLLMPage reads the names of trtllm-serve; labels it was not told read "undefined".
func TestTRTLLMPage(t *testing.T) {
	page := `trtllm_num_requests_running{engine_type="undefined",model_name="undefined"} 3.0
trtllm_num_requests_waiting{engine_type="undefined",model_name="undefined"} 1.0
trtllm_kv_cache_utilization{engine_type="undefined",model_name="undefined"} 0.42
trtllm_kv_cache_tokens_per_block{engine_type="undefined",model_name="undefined"} 32.0
trtllm_kv_cache_max_blocks{engine_type="undefined",model_name="undefined"} 4096.0
trtllm_kv_cache_hit_rate{engine_type="undefined",model_name="undefined"} 0.5
trtllm_prompt_tokens_total{engine_type="undefined",model_name="undefined"} 100.0
trtllm_prompt_cached_tokens_total{engine_type="undefined",model_name="undefined"} 64.0
trtllm_generation_tokens_total{engine_type="undefined",model_name="undefined"} 12.0
`
	want := fleet.Load{
		Known:   gauges | fleet.KnowBlocks | fleet.KnowPrefix | fleet.KnowTokens,
		Running: 3, Waiting: 1, KVUsage: .42, KVMax: .42, BlockSize: 32, Blocks: 4096,
		Queries: 100, Hits: 64, Prompt: 100, Generated: 12,
	}
	got, r := scan(t, page)
	if diff := cmp.Diff(want, got); diff != "" || r != (Report{}) {
		t.Fatalf("%+v (-want +got):\n%s", r, diff)
	}
	if p := Path("trtllm"); p != "/prometheus/metrics" {
		t.Errorf("page at %q", p)
	}
}

// TestB18NaNAndOutOfRange: a bad gauge spoils itself only.
func TestB18NaNAndOutOfRange(t *testing.T) {
	page := `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="demo"} %s
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="demo"} 4
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="demo"} %s
# TYPE sglang:fwd_occupancy gauge
sglang:fwd_occupancy{model_name="demo"} NaN
`
	for _, usage := range []string{"NaN", "+Inf", "-Inf", "-0.1", "1.7", "87", "1e400", "abc", "", "0x1p-2", "1_0"} {
		l, r := scan(t, fmt.Sprintf(page, "3", usage))
		if l.Running != 3 || l.Waiting != 4 || l.Known != gauges&^fleet.KnowKV || l.KVUsage != 0 {
			t.Errorf("usage %s: %+v", usage, l)
		}
		if r.Refused != 1 || r.Rejected != fleet.KnowKV || r.Missing != 0 {
			t.Errorf("usage %s: %+v", usage, r)
		}
	}
	for _, n := range []string{"-1", "1e30", "NaN", "2.5", "-Inf"} {
		l, r := scan(t, fmt.Sprintf(page, n, "0.42"))
		if l.Known != gauges&^fleet.KnowRunning || l.Running != 0 || l.KVUsage != .42 || r.Refused != 1 {
			t.Errorf("running %s: %+v %+v", n, l, r)
		}
	}
	for _, usage := range []string{"0", "1", "-1e-9", "1.0000001"} { // rounding of the engine
		if l, r := scan(t, fmt.Sprintf(page, "3", usage)); !l.Known.Has(fleet.KnowKV) || r.Refused != 0 || l.KVUsage < 0 || l.KVUsage > 1 {
			t.Errorf("usage %s: %+v %+v", usage, l, r)
		}
	}
	l, r := scan(t, fmt.Sprintf(page, "3", "0.42")+fmt.Sprintf(page, "3", "NaN")) // twice the same series, one of them bad
	if l.Known.Has(fleet.KnowKV) || r.Refused != 1 {
		t.Errorf("good and bad: %+v %+v", l, r)
	}
}

// TestB19EngineDialects: a renamed or missing series is unknown, never zero.
func TestB19EngineDialects(t *testing.T) {
	const (
		old = `vllm:gpu_cache_usage_perc{model_name="demo"} 0.31` + "\n"
		now = `vllm:kv_cache_usage_perc{model_name="demo"} 0.62` + "\n"
		wr  = `vllm:num_requests_waiting{model_name="demo"} 1` + "\n" + `vllm:num_requests_running{model_name="demo"} 2` + "\n"
	)
	for name, c := range map[string]struct {
		page string
		want float32
	}{"A": {old, .31}, "B": {old + now, .62}, "B reversed": {now + old, .62}} {
		if l, _ := scan(t, wr+c.page); l.KVUsage != c.want || !l.Known.Has(gauges) {
			t.Errorf("page %s: %+v", name, l)
		}
	}
	l, r := scan(t, wr) // C and D
	if l.Known != gauges&^fleet.KnowKV || r.Missing != fleet.KnowKV || r.Refused != 0 || r.Rejected != 0 || l.RunningLoRA != nil {
		t.Errorf("page C: %+v %+v", l, r)
	}
	for _, suffix := range []string{"", "_total"} { // E
		l, _ := scan(t, "vllm:prompt_tokens"+suffix+" 7\nvllm:generation_tokens"+suffix+" 3\nvllm:num_preemptions"+suffix+" 2\n"+
			"vllm:prefix_cache_queries"+suffix+" 5\nvllm:prefix_cache_hits"+suffix+" 4\n")
		if l.Prompt != 7 || l.Generated != 3 || l.Preemptions != 2 || l.Queries != 5 || l.Hits != 4 {
			t.Errorf("counters with suffix %q: %+v", suffix, l)
		}
	}
	for _, body := range []string{"[]", "[]\n", "", "\n", "{}\n", `[{"cpuMemUsage":0,"iter":1}]` + "\n", "<html>\n<body>not found</body>\n</html>\n", "go_goroutines 5\n"} { // F
		for _, engine := range []string{"", "vllm", "trtllm"} {
			if l, _, err := scanCut([]byte(body), engine, "demo", 0); err == nil {
				t.Errorf("body %q as %q: %+v, want no data", body, engine, l)
			}
		}
	}
	if l, _ := scan(t, strings.ReplaceAll(wr+now, `"demo"`, `"undefined"`)); l.Waiting != 1 || l.Running != 2 || l.KVUsage != .62 {
		t.Errorf("undefined model: %+v", l)
	}
}

// TestB19TwoModels: of two models on one page, the endpoint's counts.
func TestB19TwoModels(t *testing.T) {
	page := `vllm:num_requests_waiting{model_name="demo"} 1
vllm:num_requests_waiting{model_name="other"} 50
vllm:num_requests_running{model_name="other"} 9
vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1
`
	shuffled(t, page, func(page string) {
		l, r := scan(t, page)
		if l.Waiting != 1 || l.Known != fleet.KnowWaiting|fleet.KnowBlocks || r.Missing != fleet.KnowRunning|fleet.KnowKV {
			t.Fatalf("demo: %+v %+v\n%s", l, r, page)
		}
		if _, _, err := scanCut([]byte(page), "", "third", 0); err == nil {
			t.Fatal("a page of two other models was taken for the endpoint's")
		} else if c := causeOf(err); c != NoSeries || !strings.Contains(c.remedy(err), "model:") {
			t.Fatalf("%v: cause %v, remedy %q", err, c, c.remedy(err))
		}
		all, _, err := scanCut([]byte(page), "", "", 0)
		if err != nil || all.Waiting != 51 {
			t.Fatalf("an endpoint for any model: %+v, %v", all, err)
		}
	})
}

// TestB20SeveralEngines: the data-parallel ranks of one page add up, in any order of lines.
func TestB20SeveralEngines(t *testing.T) {
	page := `vllm:num_requests_running{engine="0",model_name="demo"} 30
vllm:num_requests_running{engine="1",model_name="demo"} 2
vllm:num_requests_waiting{engine="0",model_name="demo"} 5
vllm:num_requests_waiting{engine="1",model_name="demo"} 0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.90
vllm:kv_cache_usage_perc{engine="1",model_name="demo"} 0.10
`
	lines := strings.SplitAfter(page, "\n")
	permutations(lines[:len(lines)-1], func(lines []string) {
		page := strings.Join(lines, "")
		l, r := scan(t, page)
		if l.Running != 32 || l.Waiting != 5 || l.KVUsage != .5 || l.KVMax != .9 || l.Known != gauges || r != (Report{}) {
			t.Fatalf("%+v %+v\n%s", l, r, page)
		}
	})
}

// TestB20MissingRank: a rank that lacks one of its series makes the sum unknown; a rank that is gone
// altogether does not.
func TestB20MissingRank(t *testing.T) {
	var page strings.Builder
	for rank := range 8 {
		for _, name := range []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total", "generation_tokens_total"} {
			v := 1.0
			if name == "kv_cache_usage_perc" {
				v = .125
			}
			fmt.Fprintf(&page, "vllm:%s{engine=%q,model_name=\"demo\"} %v\n", name, fmt.Sprint(rank), v)
		}
	}
	all := page.String()
	if l, _ := scan(t, all); l.Running != 8 || l.Waiting != 8 || l.KVUsage != .125 || l.Prompt != 8 {
		t.Fatalf("8 ranks: %+v", l)
	}
	without := func(substring string) string {
		var kept []string
		for _, l := range strings.SplitAfter(all, "\n") {
			if !strings.Contains(l, substring) {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "")
	}
	if l, r := scan(t, without(`engine="7"`)); l.Running != 7 || l.Waiting != 7 || l.Prompt != 7 || r != (Report{}) {
		t.Errorf("a rank gone: %+v %+v", l, r)
	}
	if l, r := scan(t, without(`num_requests_waiting{engine="3"`)); l.Known.Has(fleet.KnowWaiting) || r.Rejected != fleet.KnowWaiting || l.Running != 8 {
		t.Errorf("one waiting series gone: %+v %+v", l, r)
	}
	if l, r := scan(t, without(`prompt_tokens_total{engine="3"`)); l.Known.Has(fleet.KnowTokens) || r.Rejected != fleet.KnowTokens || l.Running != 8 {
		t.Errorf("one counter gone: %+v %+v", l, r)
	}
	info := all + `vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="100"} 1` + "\n"
	if l, _ := scan(t, info); l.Known.Has(fleet.KnowBlocks) {
		t.Errorf("blocks of one rank pass for those of eight: %+v", l)
	}
}

// TestB21LoRA: the newest state counts, wherever its line stands.
func TestB21LoRA(t *testing.T) {
	lines := []string{
		`vllm:lora_requests_info{max_lora="4",running_lora_adapters="a1,a2",waiting_lora_adapters=""} 1.7600000300e+09` + "\n",
		`vllm:lora_requests_info{max_lora="4",running_lora_adapters="a1",waiting_lora_adapters="a3"} 1.7600000450e+09` + "\n",
		`vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7600000100e+09` + "\n",
	}
	check := func(page string, slots, free int32, running, waiting []string) {
		t.Helper()
		l, r := scan(t, page)
		n, ok := l.FreeLoRA()
		if !l.Known.Has(fleet.KnowLoRA) || l.MaxLoRA != slots || !slices.Equal(l.RunningLoRA, running) || !slices.Equal(l.WaitingLoRA, waiting) || r.Refused != 0 {
			t.Errorf("%+v %+v\n%s", l, r, page)
		}
		if ok != (slots > 0) || n != free {
			t.Errorf("free slots %d, %v\n%s", n, ok, page)
		}
	}
	permutations(lines, func(l []string) { check(strings.Join(l, ""), 4, 2, []string{"a1"}, []string{"a3"}) })
	check(lines[2], 4, 4, nil, nil) // no adapter, not one without a name
	line := `vllm:lora_requests_info{%srunning_lora_adapters=%q,waiting_lora_adapters=%q} 1` + "\n"
	check(fmt.Sprintf(line, `max_lora="4",`, "a1, a2,", ""), 4, 2, []string{"a1", "a2"}, nil)
	check(fmt.Sprintf(line, `max_lora="4",`, "a1,a2", "a2,a3"), 4, 1, []string{"a1", "a2"}, []string{"a2", "a3"})
	check(fmt.Sprintf(line, `max_lora="1",`, "a1,a2", "a2,a3"), 1, 0, []string{"a1", "a2"}, []string{"a2", "a3"})
	check(fmt.Sprintf(line, `max_lora="x",`, "a1", ""), 0, 0, []string{"a1"}, nil)
	check(fmt.Sprintf(line, ``, "a1", ""), 0, 0, []string{"a1"}, nil)
	tie := []string{fmt.Sprintf(line, ``, "a1", "z"), fmt.Sprintf(line, ``, "a2", "b"), fmt.Sprintf(line, ``, "a2", "c")}
	permutations(tie, func(l []string) { check(strings.Join(l, ""), 0, 0, []string{"a2"}, []string{"c"}) })

	// After a restart the times go back; the page is judged by itself.
	later, _ := scan(t, strings.Join(lines, ""))
	var s Scanner
	s.Reset("", "demo")
	s.Write([]byte(lines[0]))
	var again fleet.Load
	if _, err := s.Load(&again, &later); err != nil || !slices.Equal(again.RunningLoRA, []string{"a1", "a2"}) || again.WaitingLoRA != nil {
		t.Errorf("after a restart: %+v, %v", again, err)
	}
	for _, bad := range []string{strings.Repeat("x", 300), "a\\nb", "a," + strings.Repeat("b", 257)} {
		if l, r := scan(t, "vllm:num_requests_waiting 1\n"+`vllm:lora_requests_info{running_lora_adapters="`+bad+`"} 1`+"\n"); l.Known.Has(fleet.KnowLoRA) || r.Rejected != fleet.KnowLoRA {
			t.Errorf("adapters %.10q: %+v %+v", bad, l, r)
		}
	}
}

// permutations calls f with every order of lines.
func permutations(lines []string, f func([]string)) {
	if len(lines) <= 1 {
		f(lines)
		return
	}
	for i := range lines {
		rest := slices.Concat(lines[:i], lines[i+1:])
		permutations(rest, func(tail []string) { f(append([]string{lines[i]}, tail...)) })
	}
}

// shuffled calls f with the lines of page in some random orders.
func shuffled(t *testing.T, page string, f func(string)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	lines := strings.SplitAfter(page, "\n")
	lines = lines[:len(lines)-1]
	for range 50 {
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		f(strings.Join(lines, ""))
	}
}

// seeds are small pages for fuzzing.
func seeds() []string {
	nan := math.NaN()
	return []string{
		"vllm:num_requests_waiting{engine=\"0\",model_name=\"demo\"} 1\nvllm:num_requests_waiting{engine=\"1\",model_name=\"demo\"} 2\n",
		"vllm:kv_cache_usage_perc{model_name=\"other\"} 0.5 1395066363000\nvllm:gpu_cache_usage_perc 0.3\n",
		fmt.Sprintf("vllm:num_requests_running %v\n# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total 1e3\n", nan),
		"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a1, a2,\",waiting_lora_adapters=\"\"} 1.76e+09\n",
		"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\",engine=\"0\"} 1\n",
		"{\"vllm:num_requests_waiting\",model_name=\"de\\\"m\\\\o\\n\"} 4\n",
		" \tvllm:num_requests_waiting { engine = \"0\" , } 4 \n",
		"vllm:generation_tokens 3\r\nvllm:prompt_tokens 4\r\n",
	}
}
