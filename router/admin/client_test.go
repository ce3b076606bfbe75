package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	ports "github.com/presage-router/presage/internal/loopback"
)

func TestClient(t *testing.T) {
	s := newSite(t, 4, func(o *Options) { o.Token = "secret" })
	slow := s.run(t, 1310*time.Millisecond, fleet.Complete)
	last := s.run(t, 120*time.Millisecond, fleet.Complete)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	c := &Client{URL: server.URL + "/", Token: "secret"}
	x, err := c.Explain(t.Context(), slow.String())
	if err != nil || x.ID != slow.String() || x.Outcome.Missed[0] != "ttft" {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = c.Last(t.Context()); err != nil || x.ID != last.String() {
		t.Errorf("%+v, %v", x, err)
	}
	list, err := c.Worst(t.Context(), 1)
	if err != nil || len(list) != 1 || list[0].ID != slow.String() {
		t.Errorf("%+v, %v", list, err)
	}
	for what, want := range map[string]struct {
		client *Client
		id     string
		text   string
	}{
		"not kept": {c, "d-1-1", "d-1-1: not kept: the newest decisions are, and failed, missed and exploratory ones longer; newest: presage explain --last"},
		"no id":    {c, "h100-3", "h100-3: no decision id; they look like d-1x7k2m-8f"},
		"no token": {&Client{URL: server.URL}, "d-1-1", "--admin " + server.URL + ": token missing or wrong: send admin.token as Authorization: Bearer"},
	} {
		if _, err := want.client.Explain(t.Context(), want.id); err == nil || err.Error() != want.text {
			t.Errorf("%s:\ngot  %v\nwant %s", what, err, want.text)
		}
	}
}

// TestClientErrors: what an operator reads when the other end is not there, not presage, or silent.
func TestClientErrors(t *testing.T) {
	answer := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	closed, err := ports.Free(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + closed[0]
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	const hint = "is presage serve running here? in a cluster: kubectl port-forward deploy/presage 9090"
	html, page := answer(200, "<html>hello</html>"), answer(404, "404 page not found")
	forged := answer(404, `{"error":"gone\nlevel=error`+strings.Repeat("x", 10)+`"}`)
	for _, c := range []struct {
		url, want string
	}{
		{refused, "--admin " + refused + ": connection refused; " + hint},
		{silent.URL, "--admin " + silent.URL + ": no answer in 0.05 s; " + hint},
		{html, "--admin " + html + ": answers, but not as presage does; is it the admin address (listen.admin)?"},
		{page, "--admin " + page + ": status 404, and not from presage; is it the admin address (listen.admin)?"},
		{forged, `gone\nlevel=errorxxxxxxxxxx`},
		{"127.0.0.1:9090", "--admin 127.0.0.1:9090: no address; write http://HOST:PORT"},
		{"ftp://example.test", "--admin ftp://example.test: no address; write http://HOST:PORT"},
		{"http://", "--admin http://: no address; write http://HOST:PORT"},
	} {
		client := &Client{URL: c.url, Timeout: 2 * time.Second}
		if c.url == silent.URL {
			client.Timeout = 50 * time.Millisecond
		}
		if _, err := client.Last(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.url, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Client{URL: silent.URL}).Last(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
