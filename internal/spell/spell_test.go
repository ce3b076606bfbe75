package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"kv", "prefix", "queue"}
	for in, want := range map[string]string{"prefx": "prefix", "qeue": "queue", "KV": "kv", "": "kv", "queue": "queue"} {
		if got := Nearest(in, known); got != want {
			t.Errorf("Nearest(%q) = %s, want %s", in, got, want)
		}
	}
	if Nearest("x", nil) != "" {
		t.Error("nearest of none")
	}
}
