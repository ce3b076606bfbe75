package workload

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/presage-router/presage/lab/cluster"
)

// FuzzParse checks that any text is refused with a reason or read into a scenario whose jobs are
// sound and in order.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"scenarios/*.yaml", "testdata/scenario/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz", data)
		if err != nil {
			if err.Error() == "" || s != nil {
				t.Fatalf("%v with error %v", s, err)
			}
			return
		}
		if s.Name == "" || s.Duration <= 0 || s.Endpoints() == 0 || len(s.Traffic) == 0 {
			t.Fatalf("accepted %+v", s)
		}
		for _, tr := range s.Traffic {
			if tr.Trace != nil || tr.Prompt.A > 1e5 || tr.Output.A > 1e5 { // files of the machine, or much memory
				return
			}
			for _, p := range tr.Prefix {
				if p.Tokens.A > 1e5 || p.Groups > 1e4 {
					return
				}
			}
		}
		src, err := s.Source(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var last cluster.Job
		for range 50 {
			var j cluster.Job
			if !src.Next(&j) {
				break
			}
			if j.At < last.At || j.At >= s.Duration {
				t.Fatalf("job at %s after %s of %s", j.At, last.At, s.Duration)
			}
			checkJob(t, &j)
			for i := 0; j.Then != nil && i < 3; i++ {
				var next cluster.Job
				if !j.Then.Next(&next) {
					break
				}
				checkJob(t, &next)
			}
			last = j
		}
	})
}
