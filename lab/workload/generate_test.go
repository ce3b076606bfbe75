package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"

	"github.com/presage-router/presage/lab/cluster"
)

// pull takes up to n jobs of a source and checks what holds for all.
func pull(t *testing.T, src cluster.Source, n int) []cluster.Job {
	t.Helper()
	var jobs []cluster.Job
	last := time.Duration(0)
	for len(jobs) < n {
		var j cluster.Job
		if !src.Next(&j) {
			break
		}
		if j.At < last {
			t.Fatalf("job %d at %s after %s", len(jobs), j.At, last)
		}
		last = j.At
		checkJob(t, &j)
		jobs = append(jobs, j)
	}
	return jobs
}

func checkJob(t *testing.T, j *cluster.Job) {
	t.Helper()
	if j.PromptTokens < 1 || j.OutputTokens < 1 || len(j.Blocks) != (j.PromptTokens+j.OutputTokens)/BlockTokens || j.Class == "" {
		t.Fatalf("%d prompt and %d output tokens in %d blocks, class %q", j.PromptTokens, j.OutputTokens, len(j.Blocks), j.Class)
	}
}

func source(t *testing.T, name string, o Options) cluster.Source {
	t.Helper()
	s, err := Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	src, err := s.Source(o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func common(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

var (
	noThen = cmpopts.IgnoreFields(cluster.Job{}, "Then")
	whole  = cmp.Comparer(slices.Equal[[]uint64]) // not hash by hash
)

// Equal options give equal jobs, later ones of sessions included, in whatever order sessions are asked.
func TestSourcesAreDeterministic(t *testing.T) {
	generated := slices.DeleteFunc(Names(), func(n string) bool { s, err := Builtin(n); return err != nil || s.NeedsTrace() })
	if len(generated) != 18 {
		t.Fatalf("%d generated scenarios", len(generated))
	}
	for _, name := range generated {
		a, b := pull(t, source(t, name, Options{Seed: 7}), 80), pull(t, source(t, name, Options{Seed: 7}), 80)
		var later [2][]cluster.Job
		for k, jobs := range [][]cluster.Job{a, b} {
			order := make([]int, len(jobs))
			for i := range order {
				order[i] = i
			}
			if k == 1 {
				slices.Reverse(order)
			}
			got := map[int][]cluster.Job{}
			for _, i := range order {
				for range 5 {
					var j cluster.Job
					if jobs[i].Then == nil || !jobs[i].Then.Next(&j) {
						break
					}
					got[i] = append(got[i], j)
				}
			}
			for i := range jobs {
				later[k] = append(later[k], got[i]...)
			}
		}
		if d := cmp.Diff(append(a, later[0]...), append(b, later[1]...), noThen, whole); d != "" {
			t.Errorf("%s: two sources of one seed differ:\n%.2000s", name, d)
		}
		if c := pull(t, source(t, name, Options{Seed: 8}), 80); cmp.Equal(a, c, noThen, whole) {
			t.Errorf("%s: seeds 7 and 8 give equal jobs", name)
		}
	}
}

// A change of one aspect moves no other: load moves arrivals alone.
func TestAspectsAreIndependent(t *testing.T) {
	for _, name := range []string{"tenants", "mixed-gpus", "lora", "codechat", "herd"} {
		a, b := pull(t, source(t, name, Options{Seed: 3}), 100), pull(t, source(t, name, Options{Seed: 3, Load: 1.3}), 100)
		same := cmpopts.IgnoreFields(cluster.Job{}, "At", "Then")
		if d := cmp.Diff(a, b, same, whole); d != "" {
			t.Errorf("%s: load changes more than times:\n%.1500s", name, d)
		}
		if a[50].At == b[50].At {
			t.Errorf("%s: load changes nothing", name)
		}
	}
	s, err := Builtin("mixed-gpus")
	if err != nil {
		t.Fatal(err)
	}
	before := pull(t, source(t, "mixed-gpus", Options{Seed: 3}), 200)
	s.Traffic[0].Output = Dist{Kind: "fixed", A: 5}
	src, err := s.Source(Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	after := pull(t, src, 200)
	if d := cmp.Diff(before, after, cmpopts.IgnoreFields(cluster.Job{}, "OutputTokens", "Blocks"), whole); d != "" {
		t.Errorf("answer lengths move other things:\n%.1500s", d)
	}
}

// Rates and lengths of the generated scenarios are those of their files.
func TestScenarioRates(t *testing.T) {
	for name, want := range map[string]struct{ rate, prompt, output float64 }{
		"tenants":       {12, 7200, 1000},
		"slow-endpoint": {9, 7200, 1000},
		"reasoning":     {6, 250, 6000},
		"mixed-sizes":   {42, 729, 300},
		"steady":        {170, 800, 300},
		"lora":          {45, 900, 250},
		"failures":      {80, 2500, 300},
		"upgrade":       {120, 1600, 300},
		"kv-pressure":   {8, 600, 500},
		"herd":          {2000. / 120, 8392, 200},
		"bursts":        {40 + 300*1.5*6/120, 2200, 500},
	} {
		s, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Duration = 120 * time.Second
		src, err := s.Source(Options{Seed: 11})
		if err != nil {
			t.Fatal(err)
		}
		jobs := pull(t, src, math.MaxInt)
		n := float64(len(jobs))
		spread := math.Sqrt(n)
		if name == "bursts" {
			spread *= 3 // CV of its gaps
		}
		within(t, name+" rate", n, want.rate*s.Duration.Seconds(), 4*spread)
		prompts, outputs := make([]float64, len(jobs)), make([]float64, len(jobs))
		for i, j := range jobs {
			prompts[i], outputs[i] = float64(j.PromptTokens), float64(j.OutputTokens)
		}
		// The mean of the files is before cutting, which takes away some percent at most.
		within(t, name+" prompt", stat.Mean(prompts, nil), want.prompt, .03*want.prompt+4*stat.StdDev(prompts, nil)/math.Sqrt(n))
		within(t, name+" output", stat.Mean(outputs, nil), want.output, .03*want.output+4*stat.StdDev(outputs, nil)/math.Sqrt(n))
	}
}

// Each herd shares its prompt, and no two herds do.
func TestHerdPrompts(t *testing.T) {
	jobs := pull(t, source(t, "herd", Options{Seed: 1}), 500)
	for i, j := range jobs {
		if n := common(j.Blocks, jobs[i/250*250].Blocks); i%250 != 0 && n != 512 {
			t.Fatalf("request %d shares %d blocks with its herd", i, n)
		}
		if j.At < time.Duration(i/250)*15*time.Second || j.At > time.Duration(i/250)*15*time.Second+200*time.Millisecond {
			t.Fatalf("request %d at %s", i, j.At)
		}
	}
	if n := common(jobs[0].Blocks, jobs[250].Blocks); n != 0 {
		t.Errorf("two herds share %d blocks", n)
	}
}

func TestTenantPrompts(t *testing.T) {
	jobs := pull(t, source(t, "tenants", Options{Seed: 1}), 2000)
	first, users := map[string]cluster.Job{}, map[string]bool{}
	for _, j := range jobs {
		users[j.Session] = true
		if f, ok := first[j.Tenant]; ok {
			if n := common(f.Blocks, j.Blocks); n != 375 {
				t.Fatalf("tenant %s: %d blocks shared", j.Tenant, n)
			}
			continue
		}
		for tenant, f := range first {
			if n := common(f.Blocks, j.Blocks); n != 0 {
				t.Fatalf("tenants %s and %s share %d blocks", tenant, j.Tenant, n)
			}
		}
		first[j.Tenant] = j
	}
	if len(first) != 150 || len(users) < 600 || len(users) > 750 {
		t.Errorf("%d tenants with %d users", len(first), len(users))
	}
}

func TestAdaptersShareNothing(t *testing.T) {
	jobs := pull(t, source(t, "lora", Options{Seed: 1}), 3000)
	seen := map[int32]cluster.Job{}
	for _, j := range jobs {
		if j.Adapter < 1 || j.Adapter > 64 {
			t.Fatalf("adapter %d", j.Adapter)
		}
		for a, o := range seen {
			want := 0
			if a == j.Adapter {
				want = 500 / BlockTokens
			}
			if n := common(o.Blocks, j.Blocks); n != want {
				t.Fatalf("adapters %d and %d share %d blocks", a, j.Adapter, n)
			}
		}
		seen[j.Adapter] = j
	}
	if len(seen) != 64 {
		t.Errorf("%d adapters", len(seen))
	}
}

// Each turn repeats all that was said, and the answer before.
func TestConversations(t *testing.T) {
	s, err := Builtin("codechat")
	if err != nil {
		t.Fatal(err)
	}
	var turns, thinks []float64
	for _, first := range pull(t, source(t, "codechat", Options{Seed: 5}), math.MaxInt) {
		n, before := 1.0, first
		for first.Then != nil {
			var j cluster.Job
			if !first.Then.Next(&j) {
				break
			}
			checkJob(t, &j)
			said := before.PromptTokens + before.OutputTokens
			if j.PromptTokens <= said || common(before.Blocks, j.Blocks) != len(before.Blocks) || j.Session != first.Session || j.SLO != first.SLO {
				t.Fatalf("turn %v of %s: %d prompt tokens after %d", n, j.Session, j.PromptTokens, said)
			}
			if j.PromptTokens+j.OutputTokens > s.Traffic[0].Session.Limit || j.At > 120*time.Second {
				t.Fatalf("turn %v: %d tokens after %s", n, j.PromptTokens+j.OutputTokens, j.At)
			}
			thinks = append(thinks, j.At.Seconds())
			n, before = n+1, j
		}
		turns = append(turns, n)
	}
	if m := stat.Mean(turns, nil); m < 7 || m > 14 { // 14 before the limit of the context ends some
		t.Errorf("%v turns on average", m)
	}
	within(t, "think", stat.Mean(thinks, nil), 12, 1.5)
}

func TestClosedLoop(t *testing.T) {
	text := `
name: closed
about: a
expects: b
duration: 60s
fleet: [{gpu: H100, model: llama-3.1-8b}]
traffic:
  - class: %s
    arrivals: [{closed: {users: 4, think: {uniform: {min: 1, max: 3}}, steps: [{at: 30s, users: 6}]}}]
    prefix: [{groups: 3, tokens: 160, pick: {zipf: 1}}]
    prompt: {uniform: {min: 10, max: 90}}
    output: 20
%s`
	for _, session := range []string{"", "    session: {turns: {uniform: {min: 1, max: 3}}, think: 0.25, next: 40}\n"} {
		s, err := Parse("closed", fmt.Appendf(nil, text, "loop", session))
		if err != nil {
			t.Fatal(err)
		}
		run := func(order []int) map[int][]cluster.Job {
			src, err := s.Source(Options{Seed: 9})
			if err != nil {
				t.Fatal(err)
			}
			users := pull(t, src, math.MaxInt)
			if len(users) != 6 || users[3].At != 0 || users[4].At != 30*time.Second {
				t.Fatalf("%d users, the fourth at %s", len(users), users[3].At)
			}
			got := map[int][]cluster.Job{}
			for _, u := range order {
				var j cluster.Job
				if !users[u].Then.Next(&j) {
					t.Fatal("a user left")
				}
				checkJob(t, &j)
				got[u] = append(got[u], j)
			}
			return got
		}
		var a, b []int
		for range 200 {
			for u := range 6 {
				a, b = append(a, u), append(b, 5-u)
			}
		}
		slices.Sort(b)
		x, y := run(a), run(b)
		if d := cmp.Diff(x, y, noThen, whole); d != "" {
			t.Errorf("the order in which users are asked matters:\n%.1000s", d)
		}
		follow, sum, n := 0, 0.0, 0.0
		for _, jobs := range x {
			for i := 1; i < len(jobs); i++ {
				if common(jobs[i-1].Blocks, jobs[i].Blocks) == len(jobs[i-1].Blocks) && jobs[i].PromptTokens > jobs[i-1].PromptTokens {
					follow++
					if jobs[i].At != 250*time.Millisecond {
						t.Fatalf("a later turn after %s", jobs[i].At)
					}
					continue
				}
				sum, n = sum+jobs[i].At.Seconds(), n+1
			}
		}
		within(t, "think", sum/n, 2, .1)
		if share := float64(follow) / (6 * 199); session == "" && follow > 0 || session != "" && (share < .4 || share > .6) {
			t.Errorf("%v of the requests continue a conversation", share)
		}
	}
}

func TestClients(t *testing.T) {
	s, err := Load("testdata/scenario/everything.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Traffic = s.Traffic[:1]
	src, err := s.Source(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	jobs := pull(t, src, math.MaxInt)
	left := 0
	renewed := map[uint64]bool{}
	for _, j := range jobs {
		if j.At < 10*time.Second || j.At >= 90*time.Second || j.MaxTokens != 100 || j.OutputTokens > 100 || j.Timeout != 30*time.Second || j.Priority != -3 ||
			j.Model != "llama" || j.SLO.TTFT != 250*time.Millisecond || j.SLO.ITL != 0 || j.Tenant == "" || j.Session == "" {
			t.Fatalf("%+v", j)
		}
		if j.CancelAfter > 0 {
			left++
		}
		renewed[j.Blocks[0]] = true
	}
	within(t, "share of clients that leave", float64(left)/float64(len(jobs)), .5, 4*.5/math.Sqrt(float64(len(jobs))))
	if len(renewed) != 4*4 { // 80 s of texts renewed each 20 s, for 4 adapters
		t.Errorf("%d different beginnings", len(renewed))
	}
	for _, load := range []float64{-1, math.NaN(), math.Inf(1), 1e9} {
		if _, err := s.Source(Options{Load: load}); err == nil {
			t.Errorf("load %v accepted", load)
		}
	}
}

func BenchmarkSource(b *testing.B) {
	for _, name := range []string{"steady", "tenants", "codechat"} {
		b.Run(name, func(b *testing.B) {
			s, err := Builtin(name)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var src cluster.Source
			for i := 0; b.Loop(); i++ {
				var j cluster.Job
				if src == nil || !src.Next(&j) {
					if src, err = s.Source(Options{Seed: uint64(i)}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// Users with a number of rounds leave after them, also when a round is a conversation.
func TestRoundsEndUsers(t *testing.T) {
	text := `
name: rounds
about: a
expects: b
duration: 60s
fleet: [{gpu: H100, model: llama-3.1-8b}]
traffic:
  - class: loop
    arrivals: [{closed: {users: 2, rounds: 3}}]
    prompt: 50
    output: 20
%s`
	for session, want := range map[string]int{"": 3, "    session: {turns: 4, think: 1, next: 40}\n": 12} {
		s, err := Parse("rounds", fmt.Appendf(nil, text, session))
		if err != nil {
			t.Fatal(err)
		}
		src, err := s.Source(Options{Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		users := pull(t, src, math.MaxInt)
		if len(users) != 2 {
			t.Fatalf("%d users", len(users))
		}
		for _, u := range users {
			n := 1
			for j := (cluster.Job{}); n < 100 && u.Then.Next(&j); j = (cluster.Job{}) {
				n++
			}
			if n != want {
				t.Errorf("session %q: %d requests, want %d", session, n, want)
			}
		}
	}
}

// Levels of prefixes with the same text name share their texts across classes, others do not.
func TestNamedPrefixTexts(t *testing.T) {
	s, err := Parse("texts", []byte(`
name: texts
about: a
expects: b
duration: 60s
fleet: [{gpu: H100, model: llama-3.1-8b}]
traffic:
  - {class: a, arrivals: [{burst: {count: 1, every: 60s, within: 1ms}}], prefix: [{tokens: 1600, text: hot}], prompt: 100, output: 1}
  - {class: b, arrivals: [{burst: {count: 1, every: 60s, within: 1ms}}], prefix: [{tokens: 1600, text: hot}], prompt: 100, output: 1}
  - {class: c, arrivals: [{burst: {count: 1, every: 60s, within: 1ms}}], prefix: [{tokens: 1600, text: cold}], prompt: 100, output: 1}
  - {class: hot, arrivals: [{burst: {count: 1, every: 60s, within: 1ms}}], prefix: [{tokens: 1600}], prompt: 100, output: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	src, err := s.Source(Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]cluster.Job{}
	for _, j := range pull(t, src, math.MaxInt) {
		of[j.Class] = j
	}
	for pair, want := range map[[2]string]int{{"a", "b"}: 100, {"a", "c"}: 0, {"a", "hot"}: 0} {
		if n := common(of[pair[0]].Blocks, of[pair[1]].Blocks); n != want {
			t.Errorf("%v share %d blocks, want %d", pair, n, want)
		}
	}
}
