package cluster

import (
	"math/rand/v2"
	"testing"
	"time"
)

// tenants yields requests with a shared prefix of 4,096 tokens, one of many, a question of 100 to 400
// tokens of its own, and an answer of 128.
type tenants struct {
	rng    *rand.Rand
	left   int
	rate   float64
	at     time.Duration
	prefix [][]uint64
	n      uint64
}

const (
	sharedTokens = 4096
	sharedOutput = 128
)

func newTenants(requests, groups int, rate float64) *tenants {
	s := &tenants{rng: rand.New(rand.NewPCG(3, 3)), left: requests, rate: rate, prefix: make([][]uint64, groups)}
	for g := range s.prefix {
		for range sharedTokens / blockTokens {
			s.n++
			s.prefix[g] = append(s.prefix[g], s.n*0x9e3779b97f4a7c15)
		}
	}
	return s
}

func (s *tenants) Next(j *Job) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.at += time.Duration(s.rng.ExpFloat64() / s.rate * 1e9)
	question := 100 + s.rng.IntN(301)
	prefix := s.prefix[s.rng.IntN(len(s.prefix))]
	own := (sharedTokens+question+sharedOutput)/blockTokens - len(prefix)
	j.Blocks = append(make([]uint64, 0, len(prefix)+own), prefix...)
	for range own {
		s.n++
		j.Blocks = append(j.Blocks, s.n*0x9e3779b97f4a7c15)
	}
	j.At, j.PromptTokens, j.OutputTokens = s.at, sharedTokens+question, sharedOutput
	return true
}

// BenchmarkScale is the scale the simulator is built for: 64 engines, a million requests with shared
// prefixes of 4k tokens, a weighted policy with the prefix index, in less than 60 s of CPU and 4 GB:
//
//	go test -run '^$' -bench Scale -benchtime 1000000x ./lab/cluster
func BenchmarkScale(b *testing.B) {
	b.ReportAllocs()
	start := cpu()
	cfg := Config{Nodes: h100s(b, 64), Policy: weighted(b), Seed: 1}
	rep, err := Run(cfg, newTenants(b.N, 1000, 64*20), nil)
	if err != nil {
		b.Fatal(err)
	}
	took := cpu() - start
	b.ReportMetric(float64(b.N)/took.Seconds(), "requests/cpu-s")
	b.ReportMetric(took.Seconds(), "cpu-s")
	var hits, queries uint64
	for _, n := range rep.Nodes {
		hits += n.Hits
		queries += n.Queries
	}
	b.ReportMetric(100*float64(hits)/float64(queries), "hit-%")
	b.ReportMetric(rep.End.Seconds(), "virtual-s")
	b.ReportMetric(peak()/(1<<20), "peak-MiB")
}
