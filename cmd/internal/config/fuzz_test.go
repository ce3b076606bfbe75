package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: any bytes give either a configuration that is in force as written, or problems that
// stand on a line of the file; never a panic.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? [x]\n: y\n"))
	f.Add([]byte("request: {rewrite: {\"\": x, '': y}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse("c.yaml", data, policies())
		if (c == nil) != (err != nil) {
			t.Fatalf("configuration %v with error %v", c, err)
		}
		if err == nil {
			if c.Listen.ExtProc == "" || c.Fleet.Scrape.Interval < leastScrape || c.Request.MaxBody <= 0 || c.Answer.Endpoints < 1 {
				t.Fatalf("impossible values: %+v", c)
			}
			return
		}
		var ps Problems
		if !errors.As(err, &ps) || len(ps) == 0 {
			t.Fatalf("%T %v", err, err)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, p := range ps {
			if p.Line < 0 || p.Line > lines {
				t.Errorf("line %d of %d: %s", p.Line, lines, p)
			}
		}
	})
}
