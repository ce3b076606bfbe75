package engine

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestBuiltinTable(t *testing.T) {
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != 25 {
		t.Fatalf("%d engines, want 25", len(table))
	}
	for i := range table {
		c := &table[i]
		got, err := table.Find(c.GPU, c.Model, c.TP, c.DType)
		if err != nil || got != c {
			t.Errorf("%s finds %v, %v", c.String(), got, err)
		}
		if _, err := New(Config{Coefs: *c}); err != nil {
			t.Errorf("%s: %v", c.String(), err)
		}
	}
	for name, want := range map[string]string{
		"h100_sxm": "H100", "NVIDIA-H100-80GB-HBM3": "H100", "a100": "A100", "NVIDIA A100-SXM4-80GB": "A100",
		"H200": "H200", "l40s": "L40S", "b200_sxm": "B200", "mi300x": "MI300X",
	} {
		if got := ShortGPU(name); got != want {
			t.Errorf("ShortGPU(%q) = %q, want %q", name, got, want)
		}
	}
	if c, err := table.Find("H100", "Llama-3.3-70B", 0, ""); err != nil || c.DType != "bfloat16" {
		t.Errorf("bfloat16 is not preferred: %v, %v", c, err)
	}
	if c, err := table.Find("H100", "llama-3.3-70b", 4, "FP8"); err != nil || c.DType != "fp8" {
		t.Errorf("fp8 is not found: %v, %v", c, err)
	}
	if _, err := table.Find("L40S", "llama-3.3-70b", 0, ""); err == nil || !strings.Contains(err.Error(), "L40S/llama-3.1-8b/tp1/bfloat16") {
		t.Errorf("error does not say what there is: %v", err)
	}
}

// TestStepTimesOfTheTable compares the model with the summary columns of the file: the time of a
// decode step of one short request (base) and the rate of one 8192-token chunk (rpeak8k).
func TestStepTimesOfTheTable(t *testing.T) {
	var rows []struct {
		Base  float64 `json:"base"`
		RPeak float64 `json:"rpeak8k"`
	}
	if err := json.Unmarshal(coefsJSON, &rows); err != nil {
		t.Fatal(err)
	}
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range table {
		e, err := New(Config{Coefs: table[i], Profile: Profile{Name: "bare", Step: 1e-6}, Kernel: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.StepTime(1, 0) - table[i].DecodeSeq; math.Abs(got-rows[i].Base) > 0.001*rows[i].Base {
			t.Errorf("%s: decode step of one request takes %.1f us, the table says %.1f", table[i].String(), got, rows[i].Base)
		}
		if got := 8192 / e.StepTime(0, 0, [2]int{8192, 0}) * 1e6; math.Abs(got-rows[i].RPeak) > 0.02*rows[i].RPeak {
			t.Errorf("%s: prefill of 8192 tokens at %.0f tokens/s, the table says %.0f", table[i].String(), got, rows[i].RPeak)
		}
	}
}

// TestKVCapacity compares the memory formula with the counts in the table and in measured vLLM logs.
func TestKVCapacity(t *testing.T) {
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	check := func(name, gpu, model string, tp int, dtype string, want int, tolerance float64) {
		s, ok := ShapeOf(model)
		if !ok {
			t.Errorf("%s: no shape of %s", name, model)
			return
		}
		got, err := KVBlocks(gpu, &s, tp, dtype, 16)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if math.Abs(float64(got-want)) > tolerance*float64(want) {
			t.Errorf("%s: %d blocks, want %d", name, got, want)
		}
	}
	for i := range table {
		c := &table[i]
		if c.Model != "gpt-oss-120b" { // mxfp4 weights
			check(c.String(), c.GPU, c.Model, c.TP, c.DType, c.KVBlocks, 0.01)
		}
	}
	check("log of 70B on 4 H100", "H100", "llama-3.3-70b", 4, "", 30425, 0.015)
	check("log of Llama-2-70B on 4 H100", "H100", "llama-2-70b", 4, "", 31356, 0.02)
	check("log of CodeLlama-34B on 2 H100", "H100", "codellama-34b", 2, "", 26602, 0.02)
}

func TestLoadRefuses(t *testing.T) {
	good := `{"gpu":"h100_sxm","model":"m","tp":1,"dtype":"bfloat16","knots":[1,2],"G":[10,20],"pf_fix":1,"pf_lin":1,"pf_quad":0,"dec_fix":1,"dec_seq":1,"dec_kv":0,"lm1":1,"lm64":1,"lm256":1,"kv_tokens":160,"kv_blocks":10}`
	if _, err := Load(strings.NewReader("[" + good + "]")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"no JSON":        {"hello", "cannot parse"},
		"truncated":      {"[" + good, "cannot parse"},
		"two values":     {"[" + good + "] []", "more data"},
		"unknown field":  {"[" + strings.Replace(good, `"tp"`, `"tb"`, 1) + "]", "unknown field"},
		"no knots":       {"[" + strings.Replace(good, "[1,2]", "[]", 1) + "]", "0 knots with 2 times"},
		"falling knots":  {"[" + strings.Replace(good, "[1,2]", "[2,1]", 1) + "]", "not rising"},
		"negative time":  {"[" + strings.Replace(good, `"dec_kv":0`, `"dec_kv":-1`, 1) + "]", "dec_kv -1 us"},
		"text as number": {"[" + strings.Replace(good, `"tp":1`, `"tp":"1"`, 1) + "]", "cannot parse"},
		"no blocks":      {"[" + strings.Replace(good, `"kv_blocks":10`, `"kv_blocks":1`, 1) + "]", "kv_blocks 1"},
		"twice":          {"[" + good + "," + good + "]", "named twice"},
		"no name":        {"[" + strings.Replace(good, `"m"`, `""`, 1) + "]", "must be named"},
	} {
		if _, err := Load(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(coefsJSON[:2000])
	f.Add([]byte(`[{"gpu":"x","model":"m","tp":1,"knots":[1,2],"G":[1,2],"kv_blocks":2}]`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Load(bytes.NewReader(data))
		if err != nil {
			return
		}
		for i := range table {
			e, err := New(Config{Coefs: table[i]})
			if err != nil {
				t.Fatalf("loaded %s, but: %v", table[i].String(), err)
			}
			if s := e.StepTime(3, 1000, [2]int{100, 7}); !(s > 0) || math.IsInf(s, 0) {
				t.Fatalf("%s: step of %v us", table[i].String(), s)
			}
		}
	})
}
