package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/presage-router/presage/features"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		logForEver(dir)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

// clock is a time that tests move.
type clock struct{ ns atomic.Int64 }

func newClock(t time.Time) *clock {
	c := new(clock)
	c.ns.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time  { return time.Unix(0, c.ns.Load()).UTC() }
func (c *clock) set(t time.Time) { c.ns.Store(t.UnixNano()) }

func open(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func numbers(t testing.TB, l *Log, since, until time.Time) []int {
	t.Helper()
	var out []int
	s, err := l.Scan(since, until, func(o *features.Observation) error {
		out = append(out, o.PromptTokens)
		return nil
	})
	if err != nil || len(s.Skipped) > 0 {
		t.Fatalf("scan: %v, %+v", err, s)
	}
	return out
}

func TestScansByTime(t *testing.T) {
	dir := t.TempDir()
	c := newClock(t0)
	l := open(t, dir, Options{Now: c.now})
	for i, at := range []time.Duration{0, 2 * time.Minute, time.Minute, time.Minute, 3 * time.Hour, 59 * time.Minute} {
		c.set(t0.Add(at))
		l.Observe(sample(t0.Add(at), i))
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(l *Log) {
		t.Helper()
		for _, q := range []struct {
			since, until time.Time
			want         []int
		}{
			{want: []int{0, 2, 3, 1, 5, 4}},
			{since: t0.Add(time.Minute), want: []int{2, 3, 1, 5, 4}},
			{until: t0.Add(time.Minute), want: []int{0}},
			{since: t0.Add(59 * time.Minute), until: t0.Add(3*time.Hour + 1), want: []int{5, 4}},
			{since: t0.Add(time.Hour), until: t0.Add(2 * time.Hour)},
			{since: t0.AddDate(-100, 0, 0), until: t0},
		} {
			if diff := cmp.Diff(q.want, numbers(t, l, q.since, q.until)); diff != "" {
				t.Errorf("%v to %v: %s", q.since, q.until, diff)
			}
		}
		if s := l.Stats(); !s.Oldest.Equal(t0) || !s.Newest.Equal(t0.Add(3*time.Hour)) || s.Dropped() != 0 {
			t.Errorf("%+v", s)
		}
	}
	check(l)
	want := errors.New("enough")
	if _, err := l.Scan(time.Time{}, time.Time{}, func(*features.Observation) error { return want }); !errors.Is(err, want) {
		t.Errorf("error of each: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Observe(sample(t0, 9)) // dropped
	if err := l.Flush(); err == nil {
		t.Error("a closed log flushes")
	}
	if s := l.Stats(); s.Full != 1 {
		t.Errorf("%+v", s)
	}
	check(open(t, dir, Options{Now: c.now}))
}

// TestObserveNeverBlocks: with a writer that is stuck, records are dropped and counted.
func TestObserveNeverBlocks(t *testing.T) {
	l := open(t, t.TempDir(), Options{Queue: 8})
	stuck, release := make(chan struct{}), make(chan struct{})
	l.mu.Lock() // keeps the writer from counting, whatever it does
	go func() { close(stuck); <-release; l.mu.Unlock() }()
	<-stuck
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				l.Observe(sample(time.Now(), i))
			}
		})
	}
	all.Wait()
	close(release)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	s := l.Stats()
	if s.Full == 0 || s.Written+s.Full != 20000 || s.Dropped() != s.Full {
		t.Errorf("%+v", s)
	}
	if n := len(numbers(t, l, time.Time{}, time.Time{})); uint64(n) != s.Written {
		t.Errorf("%d rows, %d written", n, s.Written)
	}
}

// TestClockThatJumps: years ahead, back again, and records that disagree with the clock.
func TestClockThatJumps(t *testing.T) {
	c := newClock(t0)
	l := open(t, t.TempDir(), Options{Now: c.now, Keep: time.Hour})
	put := func(at time.Time, n int) {
		t.Helper()
		l.Observe(sample(at, n))
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	put(t0, 1)
	put(t0.AddDate(3, 0, 0), 2) // years ahead of the clock
	put(t0.AddDate(0, 0, -3), 3)
	put(time.Time{}, 4)
	if s := l.Stats(); s.Clock != 3 || !strings.Contains(s.Problem, "far from the clock") {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff([]int{1}, numbers(t, l, time.Time{}, time.Time{})); diff != "" {
		t.Error(diff)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	l.last = now.Add(-time.Second)
	l.watchClock(now) // a second by both clocks
	if s := l.Stats(); s.Steps != 0 {
		t.Errorf("a pause was taken for a jump: %+v", s)
	}
	l.stepped(3*8760*time.Hour, now)
	if s := l.Stats(); s.Steps != 1 || !strings.Contains(s.Problem, "the clock jumped by 26280h0m0s") {
		t.Errorf("%+v", s)
	}
	if err := l.removeOld(now); err != nil || len(l.hours) != 1 { // the store is closed: a removal would fail
		t.Errorf("%v, %v", err, l.hours)
	}
}

// TestAgeWaitsForASteadyClock: after opening, and after a jump, age removes nothing for a while.
func TestAgeWaitsForASteadyClock(t *testing.T) {
	dir := t.TempDir()
	c := newClock(t0)
	l := open(t, dir, Options{Now: c.now, Keep: 2 * time.Hour})
	for h := range 6 {
		c.set(t0.Add(time.Duration(h) * time.Hour))
		l.Observe(sample(c.now(), h))
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := numbers(t, l, time.Time{}, time.Time{}); len(got) > 4 || len(got) < 3 {
		t.Errorf("kept for two hours: %v", got)
	}
	if s := l.Stats(); s.Removed == 0 {
		t.Errorf("%+v", s)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.set(t0.AddDate(5, 0, 0)) // or is it the clock?
	l = open(t, dir, Options{Now: c.now, Keep: 2 * time.Hour})
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, l, time.Time{}, time.Time{}); len(got) < 3 {
		t.Errorf("removed at once: %v", got)
	}
	c.set(c.now().Add(settle + checkAfter))
	for range 2 { // upkeep follows the answer
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := numbers(t, l, time.Time{}, time.Time{}); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
}

// TestFullDisk: nothing is written to a disk that is nearly full, and writing goes on afterwards.
func TestFullDisk(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	if err := l.Flush(); err != nil { // the writer waits
		t.Fatal(err)
	}
	var left atomic.Int64
	left.Store(100 << 20)
	l.free = func(string) (int64, error) { return left.Load(), nil }
	l.Observe(sample(time.Now(), 1))
	err := l.Flush()
	if err == nil || !strings.Contains(err.Error(), "100 MiB of the disk are free, 256 are left to others") {
		t.Errorf("%v", err)
	}
	if s := l.Stats(); s.NoSpace != 1 || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	left.Store(1 << 30)
	l.Observe(sample(time.Now(), 2))
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2}, numbers(t, l, time.Time{}, time.Time{})); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidRecordsAreCounted(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	o := sample(time.Now(), 1)
	o.Status = -1
	l.Observe(o)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Invalid != 1 || !strings.Contains(s.Problem, "status: -1") {
		t.Errorf("%+v", s)
	}
}

// TestUnreadableRowsAreCounted: rows of another version or schema, and damaged ones, do not end a scan.
func TestUnreadableRowsAreCounted(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	now := time.Now()
	for i, spoil := range []func([]byte) []byte{
		func(b []byte) []byte { b[0] = 7; return b },
		func(b []byte) []byte { b[3] ^= 1; return b },
		func(b []byte) []byte { return b[:50] },
		func(b []byte) []byte { return b },
	} {
		b, err := appendRow(nil, sample(now, i))
		if err != nil {
			t.Fatal(err)
		}
		wb := l.db.NewWriteBatch()
		if err := wb.Set(appendKey(nil, now, uint32(i)), spoil(b)); err != nil {
			t.Fatal(err)
		}
		if err := wb.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := l.Scan(time.Time{}, time.Time{}, func(o *features.Observation) error {
		if o.PromptTokens != 3 {
			t.Errorf("row %d", o.PromptTokens)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"other version": 1, "other schema": 1, "damaged": 1}, s.Skipped); diff != "" || s.Rows != 1 {
		t.Errorf("%d rows; %s", s.Rows, diff)
	}
	if s.First == nil || !strings.Contains(s.First.Error(), "row version 7") {
		t.Errorf("first: %v", s.First)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"trace.keep":   {Keep: time.Minute},
		"trace.budget": {Budget: 1 << 20},
		"queue -1":     {Queue: -1},
	} {
		if _, err := Open(filepath.Join(dir, "log"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Open(filepath.Join(file, "log"), Options{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("below a file: %v", err)
	}
	held := filepath.Join(dir, "held")
	open(t, held, Options{})
	if _, err := Open(held, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process: %v", err)
	}
	if !Exists(held) || Exists(filepath.Join(dir, "none")) {
		t.Error("Exists")
	}
}

func BenchmarkObserve(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	o := sample(time.Now(), 1)
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(o)
	}
}

func BenchmarkWrite(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	now := time.Now()
	o := sample(now, 1)
	i := 0
	for b.Loop() {
		if i++; i%4096 == 0 {
			if err := l.Flush(); err != nil {
				b.Fatal(err)
			}
		}
		l.Observe(o)
	}
	b.ReportMetric(float64(l.Stats().Full)/float64(i), "dropped/op")
}

// TestScanWhileRowsGo: rows that are removed during a scan may be missing in it, no more.
func TestScanWhileRowsGo(t *testing.T) {
	c := newClock(t0)
	l := open(t, t.TempDir(), Options{Now: c.now, Keep: time.Hour})
	for h := range 4 {
		c.set(t0.Add(time.Duration(h) * time.Minute))
		for n := range 500 {
			l.Observe(sample(c.now().Add(-time.Duration(h)*10*time.Hour), 1000*h+n))
		}
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	rows := 0
	s, err := l.Scan(time.Time{}, time.Time{}, func(*features.Observation) error {
		if rows++; rows != 100 {
			return nil
		}
		c.set(c.now().Add(time.Hour)) // the clock is steady enough by now
		if err := l.Flush(); err != nil {
			return err
		}
		return l.Flush()
	})
	if err != nil || rows < 500 || len(s.Skipped) > 0 {
		t.Errorf("%d rows, %v, %v", rows, err, s.Skipped)
	}
	if got := numbers(t, l, time.Time{}, time.Time{}); len(got) > 500 {
		t.Errorf("%d rows kept", len(got))
	}
}
