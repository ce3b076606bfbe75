package router

import "testing"

func TestUnknownPolicyNamesTheNearest(t *testing.T) {
	r := Registry{"llmd-sticky-token": {}, "round-robin": {}, "weighted": {}}
	_, err := r.New("llmd-stiky-token", Params{})
	want := `"llmd-stiky-token" unknown; nearest llmd-sticky-token, all: presage policies`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

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
