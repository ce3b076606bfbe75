package scrape

import (
	"bytes"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

// naive reads a vLLM page with the reference parser and folds it by the book: maps and loops, the
// rules of the package written a second time.
type naive struct {
	rows  map[[2]string]map[string]float64 // by model name ("-": no label) and engine
	bad   map[string]bool                  // metrics with a refused value, by row and name
	order [][2]string
}

// oracleNames are the wanted vLLM metrics; the value is the one meaning of several spellings.
var oracleNames = map[string]string{
	"vllm:num_requests_waiting": "waiting", "vllm:num_requests_running": "running",
	"vllm:kv_cache_usage_perc": "kv", "vllm:gpu_cache_usage_perc": "kvOld",
	"vllm:prefix_cache_queries_total": "queries", "vllm:prefix_cache_queries": "queries",
	"vllm:gpu_prefix_cache_queries_total": "queriesOld", "vllm:gpu_prefix_cache_queries": "queriesOld",
	"vllm:prefix_cache_hits_total": "hits", "vllm:prefix_cache_hits": "hits",
	"vllm:gpu_prefix_cache_hits_total": "hitsOld", "vllm:gpu_prefix_cache_hits": "hitsOld",
	"vllm:prompt_tokens_total": "prompt", "vllm:prompt_tokens": "prompt",
	"vllm:generation_tokens_total": "generated", "vllm:generation_tokens": "generated",
	"vllm:num_preemptions_total": "preemptions", "vllm:num_preemptions": "preemptions",
}

func (n *naive) put(key [2]string, name string, v float64, ok bool) {
	if n.rows[key] == nil {
		n.rows[key] = map[string]float64{}
		n.order = append(n.order, key)
	}
	if !ok {
		n.bad[key[0]+"\x00"+key[1]+"\x00"+name] = true
		return
	}
	if old, has := n.rows[key][name]; !has || v > old {
		n.rows[key][name] = v
	}
}

func believable(name string, v float64) (float64, bool) {
	whole := v == math.Trunc(v)
	switch name {
	case "waiting", "running":
		return v, whole && v >= 0 && v <= 1048576
	case "kv", "kvOld":
		return math.Max(0, math.Min(1, v)), v >= -1e-6 && v <= 1+1e-6
	case "size":
		return v, whole && v >= 1 && v <= 1048576
	case "blocks":
		return v, whole && v >= 0 && v <= 1<<25
	}
	return v, v >= 0 && v <= 1e18
}

// glued finds names run together with what follows, which the reference parser lets pass although
// the format wants a blank or a brace there.
var glued = regexp.MustCompile(`(?m)^[ \t]*[a-zA-Z_:][a-zA-Z0-9_:]*[^a-zA-Z0-9_: \t{\r\n]`)

// oracle returns the load of a page and whether the page is usable; ok is false when the reference
// parser refuses the page or the page is outside what the comparison covers.
func oracle(page []byte, name string) (l fleet.Load, usable, ok bool) {
	if glued.Match(page) {
		return l, false, false
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(bytes.ReplaceAll(page, []byte("\r\n"), []byte("\n"))))
	if err != nil {
		return l, false, false
	}
	n := naive{rows: map[[2]string]map[string]float64{}, bad: map[string]bool{}}
	var lora []*dto.Metric
	for fam, f := range families {
		meaning, want := oracleNames[fam]
		info := fam == "vllm:cache_config_info" || fam == "vllm:lora_requests_info"
		if !want && !info {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetHistogram() != nil || m.GetSummary() != nil {
				return l, false, false
			}
			labels := map[string]string{}
			for _, lp := range m.GetLabel() {
				labels[lp.GetName()] = lp.GetValue()
			}
			key := [2]string{"-", labels["engine"]}
			if labels["model_name"] != "" {
				key[0] = "m" + labels["model_name"]
			}
			switch {
			case fam == "vllm:lora_requests_info":
				lora = append(lora, m)
			case info:
				n.put(key, "", 0, true)
				for label, what := range map[string]string{"block_size": "size", "num_gpu_blocks": "blocks"} {
					s := labels[label]
					if s == "" || s == "None" {
						continue
					}
					v, err := strconv.ParseUint(s, 10, 32)
					x, good := believable(what, float64(v))
					n.put(key, what, x, err == nil && good)
				}
			default:
				v, good := believable(meaning, value(m))
				n.put(key, meaning, v, good)
			}
		}
	}
	if len(n.rows) > maxRows || len(page) > maxLine {
		return l, false, false
	}
	l, usable = n.fold(name, lora)
	return l, usable, true
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	}
	return m.GetUntyped().GetValue()
}

func (n *naive) fold(name string, lora []*dto.Metric) (l fleet.Load, usable bool) {
	newest := -1.0
	var best [3]string
	for _, m := range lora {
		if v := value(m); v >= 0 && !math.IsInf(v, 0) {
			var c [3]string
			for _, lp := range m.GetLabel() {
				switch lp.GetName() {
				case "running_lora_adapters":
					c[0] = lp.GetValue()
				case "waiting_lora_adapters":
					c[1] = lp.GetValue()
				case "max_lora":
					c[2] = lp.GetValue()
				}
			}
			if v > newest || v == newest && (c[0] > best[0] || c[0] == best[0] && c[1] > best[1]) {
				newest, best = v, c
			}
		}
	}
	if len(n.rows) == 0 && newest < 0 {
		return l, false
	}
	// The model: the endpoint's, or the only one there is.
	models := map[string]bool{}
	for k := range n.rows {
		if k[0] != "-" {
			models[k[0]] = true
		}
	}
	all := false
	pick := "m" + name
	if !models[pick] {
		switch {
		case len(models) == 1:
			for m := range models {
				pick = m
			}
		case len(models) > 1 && name == "":
			all = true
		case len(models) > 1:
			return l, false
		}
	}
	var rows [][2]string
	for _, k := range n.order {
		if all || k[0] == "-" || k[0] == pick {
			rows = append(rows, k)
		}
	}
	type sum struct {
		n        int
		sum, top float64
		bad      bool
		same     bool
	}
	fold := func(what string) (s sum) {
		labelled := false
		for _, k := range rows {
			_, has := n.rows[k][what]
			labelled = labelled || k[0] != "-" && (has || n.bad[k[0]+"\x00"+k[1]+"\x00"+what])
		}
		s.same = true
		for _, k := range rows {
			if labelled && k[0] == "-" {
				continue
			}
			v, has := n.rows[k][what]
			s.bad = s.bad || n.bad[k[0]+"\x00"+k[1]+"\x00"+what]
			if has {
				s.same = s.same && (s.n == 0 || v == s.top)
				s.n++
				s.sum += v
				s.top = math.Max(s.top, v)
			}
		}
		for _, g := range []string{"waiting", "running", "kv", "kvOld"} {
			subset, less := s.n > 0, false
			for _, k := range rows {
				_, hasG := n.rows[k][g]
				_, hasM := n.rows[k][what]
				subset = subset && (!hasM || hasG)
				less = less || hasG && !hasM
			}
			s.bad = s.bad || subset && less
		}
		return s
	}
	either := func(a, b string) sum {
		if s := fold(a); s.n > 0 || s.bad {
			return s
		}
		return fold(b)
	}
	know := func(k fleet.Known, ss ...sum) bool {
		for _, s := range ss {
			if s.bad || s.n == 0 {
				return false
			}
		}
		l.Known |= k
		return true
	}
	if s := fold("waiting"); know(fleet.KnowWaiting, s) {
		l.Waiting = int32(s.sum)
	}
	if s := fold("running"); know(fleet.KnowRunning, s) {
		l.Running = int32(s.sum)
	}
	kv := either("kv", "kvOld")
	if know(fleet.KnowKV, kv) {
		l.KVUsage, l.KVMax = float32(kv.sum/float64(kv.n)), float32(kv.top)
	}
	if q, h := either("queries", "queriesOld"), either("hits", "hitsOld"); know(fleet.KnowPrefix, q, h) {
		l.Queries, l.Hits = q.sum, h.sum
	}
	if p, g := fold("prompt"), fold("generated"); know(fleet.KnowTokens, p, g) {
		l.Prompt, l.Generated = p.sum, g.sum
	}
	if s := fold("preemptions"); know(fleet.KnowPreemptions, s) {
		l.Preemptions = s.sum
	}
	if size, count := fold("size"), fold("blocks"); size.same && count.sum <= math.MaxInt32 && count.n >= kv.n && know(fleet.KnowBlocks, size, count) {
		l.BlockSize, l.Blocks = int32(size.top), int32(count.sum)
	}
	if newest >= 0 {
		r, okR := names(best[0])
		w, okW := names(best[1])
		if okR && okW {
			l.Known |= fleet.KnowLoRA
			l.RunningLoRA, l.WaitingLoRA = r, w
			if v, err := strconv.ParseUint(best[2], 10, 20); err == nil {
				l.MaxLoRA = int32(v)
			}
		}
	}
	return l, true
}

func names(s string) (out []string, ok bool) {
	for _, n := range strings.Split(s, ",") {
		if n = strings.TrimSpace(n); n == "" {
			continue
		}
		if len(n) > maxAdapterName || strings.ContainsFunc(n, isControl) {
			return nil, false
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, len(out) <= maxAdapters
}

// FuzzScanner compares the scanner with the reference parser on pages that the latter accepts, cut
// into pieces anywhere, and checks on all others that no number is invented.
func FuzzScanner(f *testing.F) {
	for _, p := range seeds() {
		f.Add([]byte(p), uint8(3))
	}
	f.Fuzz(func(t *testing.T, page []byte, cut uint8) {
		for _, name := range []string{"demo", ""} {
			got, _, err := scanCut(page, "vllm", name, int(cut))
			if err == nil {
				sane(t, &got)
			}
			want, usable, ok := oracle(page, name)
			if !ok {
				continue
			}
			if usable != (err == nil) {
				t.Fatalf("model %q: usable %v, scanner says %v\n%s", name, usable, err, page)
			}
			if err != nil {
				continue
			}
			if diff := cmp.Diff(want, got, float32Near); diff != "" {
				t.Fatalf("model %q: (-reference +scanner)\n%s\n%s", name, diff, page)
			}
		}
	})
}

// float32Near forgives the order of summation.
var float32Near = cmp.Comparer(func(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b))
})

// scanCut scans a page fed in pieces of n bytes; 0: at once.
func scanCut(page []byte, engine, name string, n int) (l fleet.Load, r Report, err error) {
	var s Scanner
	s.Reset(engine, name)
	if n == 0 {
		n = max(1, len(page))
	}
	for piece := range slices.Chunk(page, n) {
		if _, err := s.Write(piece); err != nil {
			return l, r, err
		}
	}
	r, err = s.Load(&l, &fleet.Load{})
	return l, r, err
}

// sane fails on any number that no engine can mean.
func sane(t *testing.T, l *fleet.Load) {
	t.Helper()
	for _, v := range []float64{float64(l.KVUsage), float64(l.KVMax), l.Queries, l.Hits, l.Prompt, l.Generated, l.Preemptions} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Fatalf("impossible value %v in %+v", v, l)
		}
	}
	if l.Waiting < 0 || l.Running < 0 || l.KVUsage > l.KVMax+1e-6 || l.KVMax > 1 || l.Blocks < 0 || l.BlockSize < 0 {
		t.Fatalf("impossible load %+v", l)
	}
}

// TestScannerAgainstReference compares the two on random well-formed pages: several models and
// ranks, repeated and missing series, odd values, every spelling.
func TestScannerAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := slices.Sorted(maps.Keys(oracleNames))
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		var page strings.Builder
		for range rapid.IntRange(0, 25).Draw(t, "lines") {
			var labels []string
			for _, l := range [][]string{{"model_name", "demo", "other", "undefined", ""}, {"engine", "0", "1", "2", ""}, {"pod", `a\"b`, "x"}} {
				if rapid.Bool().Draw(t, l[0]) {
					labels = append(labels, l[0]+`="`+pick(l[0]+" value", l[1:]...)+`"`)
				}
			}
			name := rapid.SampledFrom(all).Draw(t, "name")
			v := pick("value", "0", "1", "3", "0.25", "1e2", "NaN", "-1", "+Inf", "0.999", "7.5", "1e30")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				name, v = "vllm:cache_config_info", "1"
				labels = append(labels, `block_size="`+pick("size", "16", "32", "None", "x")+`"`, `num_gpu_blocks="`+pick("blocks", "100", "None", "-5")+`"`)
			case 1:
				name = "vllm:lora_requests_info"
				labels = append(labels, `running_lora_adapters="`+pick("running", "a,b", "", "a, ", "c")+`"`, `waiting_lora_adapters="`+pick("waiting", "", "b", "d,d")+`"`, `max_lora="`+pick("max", "4", "x", "")+`"`)
			}
			page.WriteString(name)
			if len(labels) > 0 {
				page.WriteString("{" + strings.Join(labels, pick("comma", ",", " , ")) + pick("close", "}", ",}"))
			}
			page.WriteString(" " + v + pick("time", "", " 1395066363000", " ") + pick("end", "\n", "\r\n"))
		}
		name := pick("pool", "demo", "", "third")
		want, usable, ok := oracle([]byte(page.String()), name)
		if !ok {
			t.Skip("not covered")
		}
		got, _, err := scanCut([]byte(page.String()), "vllm", name, rapid.IntRange(0, 20).Draw(t, "cut"))
		if usable != (err == nil) {
			t.Fatalf("usable %v, scanner says %v\n%s", usable, err, page.String())
		}
		if err == nil {
			if diff := cmp.Diff(want, got, float32Near); diff != "" {
				t.Fatalf("(-reference +scanner)\n%s\n%s", diff, page.String())
			}
		}
	})
}
