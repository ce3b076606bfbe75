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
