package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
)

// TestTracePage: what is asked for is what is read, the limit says where to go on, and what makes no
// sense is refused.
func TestTracePage(t *testing.T) {
	var since, until time.Time
	fail := -1 // row before which reading fails
	now := t0
	s := newSite(t, 1, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Trace = func(_ context.Context, from, to time.Time, each func(time.Time, []byte) error) error {
			since, until = from, to
			for i := range 5 {
				if i == fail {
					return errors.New("the disk\nis gone")
				}
				if err := each(t0.Add(time.Duration(i)*time.Second), fmt.Appendf(nil, "{\"row\":%d}\n", i)); err != nil {
					return err
				}
			}
			return nil
		}
	})
	rec := s.call("GET", "/trace")
	if rec.Code != 200 || strings.Count(rec.Body.String(), "\n") != 5 || rec.Header().Get("Content-Type") != "application/x-ndjson" || !since.IsZero() || !until.IsZero() {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	if tr := rec.Result().Trailer; tr.Get(trailerRows) != "5" || tr.Get(trailerNext) != "" {
		t.Errorf("trailer %v", tr)
	}
	rec = s.call("GET", "/trace?limit=2&since=2026-05-01&until=2026-05-02T12:00:00Z")
	if tr := rec.Result().Trailer; tr.Get(trailerRows) != "2" || tr.Get(trailerNext) != t0.Add(2*time.Second).UTC().Format(time.RFC3339Nano) || rec.Body.String() != "{\"row\":0}\n{\"row\":1}\n" {
		t.Errorf("trailer %v, %s", tr, rec.Body)
	}
	if since != time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) || !until.Equal(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%v %v", since, until)
	}
	if s.call("GET", "/trace?since=90m"); !since.Equal(t0.Add(-90 * time.Minute)) {
		t.Errorf("since %v", since)
	}
	for query, want := range map[string]string{
		"limit=0": "limit: 0: not a number from 1", "limit=x%0a": "limit: x\\n", "limit=99999999999": "limit", "since=soon": `since: \"soon\" is no time`, "until=-3h": `until: \"-3h\" is no time`,
	} {
		if rec := s.call("GET", "/trace?"+query); rec.Code != 400 || !strings.Contains(rec.Body.String(), strings.ReplaceAll(want, `\n`, `\\n`)) {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
	fail = 0
	if rec := s.call("GET", "/trace"); rec.Code != 500 || !strings.Contains(rec.Body.String(), "the disk") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	// Part of an export is no export: the client sees the connection break.
	fail, now = 3, time.Now()
	srv := httptest.NewServer(s.handler)
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/trace")
	if err != nil {
		return // the connection broke before the headers came
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a broken export looks whole: %s", text)
	}
}

// TestOneExportAtATime: others are told to wait.
func TestOneExportAtATime(t *testing.T) {
	reading, goOn := make(chan struct{}), make(chan struct{})
	s := newSite(t, 1, func(o *Options) {
		o.Trace = func(context.Context, time.Time, time.Time, func(time.Time, []byte) error) error {
			reading <- struct{}{}
			<-goOn
			return nil
		}
	})
	first := make(chan int)
	go func() { first <- s.call("GET", "/trace").Code }()
	<-reading
	if rec := s.call("GET", "/trace"); rec.Code != http.StatusTooManyRequests {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	close(goOn)
	if code := <-first; code != 200 {
		t.Errorf("status %d", code)
	}
	go func() { first <- s.call("GET", "/trace").Code }()
	<-reading
	if code := <-first; code != 200 {
		t.Errorf("status %d after the first has ended", code)
	}
}

func TestTraceMetrics(t *testing.T) {
	reg := telemetry.NewRegistry("presage", telemetry.Build{Version: "v1"})
	l := Logged{Rows: map[string]uint64{"written": 5, "clock": 2}, Removed: 3, Bytes: 1 << 20}
	m, err := NewMetrics(MetricsOptions{Registry: reg, Fleet: &fleet.Fleet{}, Now: func() time.Time { return t0 }, Trace: func() Logged { return l }})
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{m: m, reg: reg}
	c.want(t, `presage_trace_rows_total{result="written"} 5`, `presage_trace_rows_total{result="clock"} 2`, `presage_trace_removed_total 3`, `presage_trace_bytes 1.048576e+06`)
	if strings.Contains(c.page(), "presage_trace_age_seconds ") {
		t.Error("an empty log has an age")
	}
	l.Oldest = t0.Add(-2 * time.Hour)
	c.want(t, `presage_trace_age_seconds 7200`)
}
