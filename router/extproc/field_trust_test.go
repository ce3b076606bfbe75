package extproc

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/router"
)

// TestB48ClientSendsTheRoutingHeader: internal headers of clients reach nobody, in no mode and in no
// spelling; those of engines do not reach the client.
func TestB48ClientSendsTheRoutingHeader(t *testing.T) {
	evil := []string{
		"x-gateway-destination-endpoint", "10.0.0.99:8000", "X-Gateway-Destination-Endpoint", "10.0.0.98:8000,10.0.0.97:8000",
		"x-gateway-destination-endpoint-subset", "10.0.0.3", "x-gateway-destination-endpoint-served", "10.0.0.99:1", "x-gateway-model-name-rewrite", "other",
		"x-gateway-inference-objective", strings.Repeat("o", 8192), "x-prefiller-host-port", "10.0.0.99:8000", "x-data-parallel-host-port", "10.0.0.99:1", "x-presage-decision", "d-1\r\nx-evil: 1",
		"x-llm-d-slo-ttft-ms", "1", "x-harmless", "stays", "x-gateway-destination-endpoint", "",
	}
	var names []string
	for i := 0; i < len(evil); i += 2 {
		if evil[i] != "x-harmless" {
			names = append(names, evil[i])
		}
	}
	for name, msgs := range map[string][]message{
		"normal":    {chat(fds, evil...), reqBody(chatBody, true)},
		"opaque":    {open(fds, false, append([]string{":method", "POST", ":path", "/v1/other"}, evil...)...), reqBody([]byte("x"), true)},
		"buffered":  {chat(buffered, evil...), reqBody(chatBody, true)},
		"streamed":  {chat(streamed, evil...), reqBody(chatBody, true)},
		"none":      {chat(none, evil...)},
		"get":       {open(fds, true, append([]string{":method", "GET", ":path", "/v1/models"}, evil...)...)},
		"plain too": {plain(chat(fds, evil...)), reqBody(chatBody, true)},
	} {
		l := newLab(t, labOptions{})
		tr := l.run(errReset, msgs...)
		set, remove, metadata := tr.mutation()
		if !cmp.Equal(set, map[string]string{"x-gateway-destination-endpoint": "10.0.0.1:8000"}) || metadata != "10.0.0.1:8000" {
			t.Errorf("%s: set %v, metadata %q", name, set, metadata)
		}
		for _, n := range names {
			if !slices.Contains(remove, n) {
				t.Errorf("%s: %s is not removed", name, n)
			}
		}
		if slices.Contains(remove, "x-harmless") {
			t.Errorf("%s: a harmless header is removed", name)
		}
	}
	// refusals: the client's value must reach nobody, so nothing but the answer may be sent
	for name, l := range map[string]*lab{
		"no endpoint": newLab(t, labOptions{fleet: []string{}}),
		"saturated":   newLab(t, labOptions{policy: first{before: func(*router.Query) error { return router.ErrSaturated }}}),
	} {
		if tr := l.run(errReset, chat(fds, evil...), reqBody(chatBody, true)); tr.immediate() == nil || len(tr.replies) != 1 {
			t.Errorf("%s: replies %q", name, tr.kinds())
		}
	}
	if tr := newLab(t, labOptions{}).run(errReset, chat(fds, evil...), reqBody([]byte("no json"), true)); tr.immediate() == nil || len(tr.replies) != 1 {
		t.Errorf("bad body: replies %q", tr.kinds())
	}
	// responses
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), []message{respHeaders(true, "204", "x-gateway-destination-endpoint", "10.0.0.1:8000", "set-cookie", "a", "set-cookie", "b")})...)
	for _, r := range tr.replies {
		if h := r.GetResponseHeaders(); h != nil && !cmp.Equal(h.GetResponse().GetHeaderMutation().GetRemoveHeaders(), []string{"x-gateway-destination-endpoint"}) {
			t.Errorf("response: %v", h)
		}
	}
}
