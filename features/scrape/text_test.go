package scrape

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

// TestB19Sweep: what a page may look like and still say the same.
func TestB19Sweep(t *testing.T) {
	plain := `# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="de\"mo\\x"} 30
vllm:num_requests_waiting{engine="0",model_name="de\"mo\\x"} 5
vllm:kv_cache_usage_perc{engine="0",model_name="de\"mo\\x"} 0.5
vllm:prompt_tokens_total{engine="0",model_name="de\"mo\\x"} 1200
vllm:generation_tokens_total{engine="0",model_name="de\"mo\\x"} 40
vllm:num_requests_running{engine="0",model_name="another"} 7
`
	const model = `de"mo\x`
	want, _, err := scanCut([]byte(plain), "vllm", model, 0)
	if err != nil || want.Running != 30 || want.Waiting != 5 || want.KVUsage != .5 || want.Prompt != 1200 || want.Generated != 40 {
		t.Fatalf("plain: %+v, %v", want, err)
	}
	each := func(edit func(line string) string) string {
		lines := strings.SplitAfter(plain, "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "vllm:") {
				lines[i] = edit(strings.TrimSuffix(l, "\n")) + "\n"
			}
		}
		return strings.Join(lines, "")
	}
	replace := strings.ReplaceAll
	for name, page := range map[string]string{
		"CRLF":             replace(plain, "\n", "\r\n"),
		"no HELP":          replace(plain, "# HELP vllm:num_requests_running Number of requests.\n", ""),
		"label order":      replace(plain, `engine="0",model_name="de\"mo\\x"`, `model_name="de\"mo\\x",engine="0"`),
		"extra labels":     replace(plain, `{engine=`, `{a="x{}=,\" ",pod="vllm-0",engine=`),
		"labels behind":    replace(plain, `x"}`, `x",z="a}b"}`),
		"trailing comma":   replace(plain, `x"}`, `x",}`),
		"blanks":           replace(replace(replace(plain, `{engine="0",`, " { engine = \"0\"\t, "), `"} `, "\" }\t "), "\nvllm", "\n \tvllm"),
		"quoted labels":    replace(replace(plain, "engine=", `"engine"=`), "model_name=", `"model_name"=`),
		"quoted name":      each(func(l string) string { n, r, _ := strings.Cut(l, "{"); return `{"` + n + `",` + r }),
		"exponents":        replace(replace(replace(plain, " 30\n", " 3.0e+01\n"), " 0.5\n", " 5E-1\n"), " 1200\n", " 1.2e+03\n"),
		"timestamps":       each(func(l string) string { return l + " 1395066363000" }),
		"float timestamps": each(func(l string) string { return l + " 1395066363.25" }),
		"exemplars":        each(func(l string) string { return l + ` # {trace_id="a{b}"} 0.67 1520879607.789` }),
		"both":             each(func(l string) string { return l + ` 1520879607.789 # {trace_id="ab"} 0.67` }),
		"OpenMetrics end":  plain + "# EOF\n",
		"comments":         replace(plain, "vllm:num_requests_waiting{engine", "# vllm:num_requests_waiting 99\n#\nvllm:num_requests_waiting{engine"),
		"other exporters":  "\n\npython_info{version=\"3.12\"} 1\n" + plain + "http_requests_total 7\n",
		"junk beside it":   plain + "vllm:something_else{ 7\nvllm:\n}{\n\x00\xff\n",
	} {
		for _, cut := range []int{0, 1, 13} {
			got, r, err := scanCut([]byte(page), "", model, cut)
			if err != nil || r.Refused != 0 || !cmp.Equal(want, got) {
				t.Errorf("%s, pieces of %d: %v %+v (-want +got):\n%s\n%s", name, cut, err, r, cmp.Diff(want, got), page)
			}
		}
	}
}

// TestCutPage: a page cut anywhere is refused, or, where the cut falls between two lines, lacks
// values but has no wrong one.
func TestCutPage(t *testing.T) {
	page := read(t, "vllm_0_32_metrics.txt")
	page = page[strings.Index(string(page), "# HELP vllm:num_requests_running"):]
	page = page[:strings.Index(string(page), "# HELP vllm:request_success")]
	whole, _, err := scanCut(page, "vllm", "tiny", 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range page {
		l, r, err := scanCut(page[:n], "vllm", "tiny", 0)
		if err != nil {
			continue
		}
		if page[n-1] != '\n' {
			t.Fatalf("cut at %d within a line, and read as %+v", n, l)
		}
		if r.Refused != 0 || l.Known&^whole.Known != 0 || l.Waiting != whole.Waiting ||
			l.Known.Has(fleet.KnowTokens) && l.Prompt != whole.Prompt || l.Known.Has(fleet.KnowPrefix) && l.Queries != whole.Queries {
			t.Fatalf("cut at %d: %+v, whole %+v", n, l, whole)
		}
	}
	var s Scanner
	s.Reset("vllm", "tiny")
	s.OpenMetrics()
	s.Write(page)
	if _, err := s.Load(&fleet.Load{}, &fleet.Load{}); err == nil {
		t.Error("OpenMetrics without # EOF was taken for whole")
	}
}

// TestBoundedPage: what a page can make us hold or compute is bounded.
func TestBoundedPage(t *testing.T) {
	var s Scanner
	s.Reset("", "demo")
	var err error
	for range 1 << 10 {
		if _, err = s.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
			break
		}
	}
	if causeOf(err) != TooLarge {
		t.Errorf("an endless line: %v", err)
	}
	s.Reset("", "demo")
	n := 0
	for err = nil; err == nil && n < 10_000; n++ {
		_, err = s.Write(fmt.Appendf(nil, "vllm:num_requests_running{engine=\"%d\"} 1\n", n))
	}
	if causeOf(err) != TooLarge || n != maxRows+1 {
		t.Errorf("endless engines: %v after %d", err, n)
	}
	s.Reset("", "demo")
	for i := range 100 {
		fmt.Fprintf(&s, "vllm:cache_config_info{engine=\"%d\",block_size=\"16\",num_gpu_blocks=\"%d\"} 1\n", i, 1<<25)
	}
	var l fleet.Load
	if r, err := s.Load(&l, &l); err != nil || l.Known != 0 || r.Rejected != fleet.KnowBlocks {
		t.Errorf("more blocks than a number holds: %+v %+v, %v", l, r, err)
	}
}

// TestScannerDoesNotAllocate: a warm scanner reads a page and its unchanged adapters for nothing.
func TestScannerDoesNotAllocate(t *testing.T) {
	page := slices.Concat(read(t, "vllm_0_32_metrics.txt"), []byte(`vllm:lora_requests_info{max_lora="4",running_lora_adapters="a1,a2",waiting_lora_adapters="a3"} 1.76e+09`+"\n"))
	var s Scanner
	var l, old fleet.Load
	once := func() {
		s.Reset("vllm", "tiny")
		for piece := range slices.Chunk(page, 4000) {
			if _, err := s.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Load(&l, &old); err != nil {
			t.Fatal(err)
		}
		old = l
	}
	once()
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Fatalf("%v allocations per page", n)
	}
}

func BenchmarkScan(b *testing.B) {
	page := read(b, "vllm_0_32_metrics.txt")
	var s Scanner
	var l, old fleet.Load
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset("vllm", "tiny")
		if _, err := s.Write(page); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Load(&l, &old); err != nil {
			b.Fatal(err)
		}
	}
}
