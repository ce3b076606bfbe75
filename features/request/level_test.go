package request

import (
	"testing"
	"time"
)

// TestConfiguredSLO: requests for text carry the configured levels where they name none.
func TestConfiguredSLO(t *testing.T) {
	p, err := NewParser(Config{SLO: SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, header, value string
		want                SLO
	}{
		{"/v1/chat/completions", "x-none", "", SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}},
		{"/v1/completions", "x-slo-ttft-ms", "200", SLO{TTFT: 200 * time.Millisecond, ITL: 50 * time.Millisecond}},
		{"/v1/messages", "x-slo-tpot-ms", "20", SLO{TTFT: time.Second, ITL: 20 * time.Millisecond}},
		{"/v1/responses", "x-slo-ttft-ms", "never", SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}},
		{"/v1/embeddings", "x-slo-ttft-ms", "200", SLO{TTFT: 200 * time.Millisecond}},
		{"/v1/models", "x-none", "", SLO{}},
	} {
		var h Head
		h.Set(":method", []byte("POST"))
		h.Set(":path", []byte(c.path))
		h.Set(c.header, []byte(c.value))
		var r Request
		if _, err := p.Head(&r, &h, false); err != nil {
			t.Fatal(err)
		}
		if r.SLO != c.want {
			t.Errorf("%s with %s: %+v, want %+v", c.path, c.header, r.SLO, c.want)
		}
	}
}
