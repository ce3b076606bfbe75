package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/datasets/observations/record"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/training/trace"
)

func withTrace(t *testing.T) *config.Config {
	c := testConfig()
	c.Trace.Dir = filepath.Join(t.TempDir(), "trace")
	return c
}

// rowsOf reads an export.
func rowsOf(t *testing.T, text string) []features.Observation {
	t.Helper()
	var out []features.Observation
	for line := range strings.Lines(text) {
		r, err := record.Parse([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		var o features.Observation
		if err := r.Observation(&o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// TestRequestsAreLogged: what was served is in the log, to be read from the running service and, after
// its end, from the directory.
func TestRequestsAreLogged(t *testing.T) {
	c := withTrace(t)
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	const n = 20
	begin := time.Now()
	for i := range n {
		if a := l.post(context.Background(), fmt.Sprintf("prompt %d", i)); !a.complete() {
			t.Fatalf("%+v", a)
		}
	}
	l.settled()
	status, text := l.admin("/trace")
	rows := rowsOf(t, text)
	if status != http.StatusOK || len(rows) != n {
		t.Fatalf("status %d, %d rows", status, len(rows))
	}
	for i := range rows {
		o := &rows[i]
		if o.Endpoint != "e1" || o.Cause != fleet.Complete || o.OutputTokens != 2 || o.TTFT <= 0 || o.Schema != features.Schema() || i > 0 && o.At.Before(rows[i-1].At) {
			t.Errorf("row %d: %+v", i, o)
		}
	}
	for query, want := range map[string]int{
		"?limit=7": 7, "?since=" + rows[15].At.UTC().Format(time.RFC3339Nano): 5, "?until=" + rows[15].At.UTC().Format(time.RFC3339Nano): 15, "?until=" + begin.Add(-time.Hour).UTC().Format(time.RFC3339): 0, "?since=1h": n,
	} {
		if status, text := l.admin("/trace" + query); status != http.StatusOK || len(rowsOf(t, text)) != want {
			t.Errorf("%s: %d, %d rows, want %d", query, status, len(rowsOf(t, text)), want)
		}
	}
	if got := l.metric(`presage_trace_rows_total{result="written"}`); got != fmt.Sprint(n) {
		t.Errorf("written: %q", got)
	}
	if got := l.metric(`presage_trace_bytes`); got == "" || got == "0" {
		t.Errorf("bytes: %q", got)
	}
	// Nobody else can open it.
	if _, err := New(c, Deps{Endpoints: endpoints()}); !errors.Is(err, trace.ErrLocked) || !strings.HasPrefix(err.Error(), "trace.dir: "+c.Trace.Dir+": in use by another process") {
		t.Error(err)
	}
	l.close()
	log, err := trace.Open(c.Trace.Dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s, err := log.Scan(time.Time{}, time.Time{}, func(*features.Observation) error { return nil })
	if err != nil || s.Rows != n {
		t.Errorf("%+v %v", s, err)
	}
}

// TestRequestsEndingWhileDrainingAreLogged: the log is closed last.
func TestRequestsEndingWhileDrainingAreLogged(t *testing.T) {
	t.Parallel()
	c := withTrace(t)
	c.Drain.Timeout = 20 * time.Second
	e := newEngine(t, "e1")
	l := newLab(t, c, Deps{Endpoints: endpoints(e)})
	rest := l.start("hold")
	l.drain()
	l.eventually("draining", l.draining.Load)
	close(e.release)
	if a := <-rest; !a.complete() {
		t.Errorf("%+v", a)
	}
	<-l.done
	log, err := trace.Open(c.Trace.Dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s, err := log.Scan(time.Time{}, time.Time{}, func(o *features.Observation) error {
		if o.Cause != fleet.Complete {
			t.Errorf("%+v", o)
		}
		return nil
	})
	if err != nil || s.Rows != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestExportGuarded: an export needs the token, and there is none where nothing is logged.
func TestExportGuarded(t *testing.T) {
	c := withTrace(t)
	c.Admin.Token = "0123456789abcdef"
	l := newLab(t, c, Deps{Endpoints: endpoints()})
	if status, _ := l.admin("/trace"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	without := newLab(t, testConfig(), Deps{Endpoints: endpoints()})
	if status, body := without.admin("/trace"); status != http.StatusNotFound || !strings.Contains(body, "set trace.dir") {
		t.Errorf("%d %s", status, body)
	}
}

// TestStopWhileExporting: a reader of the log does not keep the service from ending, nor does the end
// pull the log away from under a reader.
func TestStopWhileExporting(t *testing.T) {
	t.Parallel()
	c := withTrace(t)
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"))})
	for i := range 5 {
		l.post(context.Background(), fmt.Sprint(i))
	}
	l.settled()
	ctx, cancel := context.WithCancel(context.Background())
	reading, over := make(chan struct{}), make(chan error)
	go func() {
		first := true
		over <- l.journal.rows(ctx, time.Time{}, time.Time{}, func(time.Time, []byte) error {
			if first {
				first = false
				close(reading)
				<-ctx.Done()
			}
			return nil
		})
	}()
	<-reading
	l.Stop()
	select {
	case <-l.done:
		t.Error("the log was closed under its reader")
	default:
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-l.done
	if err := l.journal.rows(context.Background(), time.Time{}, time.Time{}, nil); err == nil {
		t.Error("a closed log was read")
	}
}

// TestJournalComplains: a problem is logged when it is another one, at most once a minute.
func TestJournalComplains(t *testing.T) {
	j, err := openJournal(&withTrace(t).Trace)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	defer j.close(log)
	now := time.Now()
	for i, step := range []struct {
		broken bool
		later  time.Duration
		lines  int
	}{{false, 0, 0}, {true, time.Second, 1}, {false, 2 * time.Minute, 1}, {true, 3 * time.Minute, 2}, {true, 3*time.Minute + 2*time.Second, 2}, {false, 5 * time.Minute, 3}, {false, 7 * time.Minute, 3}} {
		if step.broken {
			o := features.Observation{At: now.AddDate(-1, 0, i), Schema: features.Schema()}
			j.Observe(&o)
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		j.tell(log, now.Add(step.later))
		if got := strings.Count(out.String(), "far from the clock"); got != step.lines {
			t.Errorf("step %d: %d lines, want %d\n%s", i, got, step.lines, out.String())
		}
	}
}
