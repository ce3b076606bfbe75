package trace

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const childDir = "PRESAGE_TRACE_CHILD"

// logForEver is the process that is killed: it logs as fast as it can and tells which rows were
// acknowledged.
func logForEver(dir string) {
	l, err := Open(dir, Options{Budget: 1 << 30})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	first, _ := strconv.Atoi(os.Getenv("PRESAGE_TRACE_FIRST"))
	for n := first; ; {
		for range 200 {
			l.Observe(sample(time.Now(), n))
			n++
		}
		if err := l.Flush(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// TestB50KilledWhileWriting: kill -9 ten times in one directory; every acknowledged row is there
// each time it is opened again.
func TestB50KilledWhileWriting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	rng := rand.New(rand.NewPCG(1, 2))
	acked := 0
	for round := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir, "PRESAGE_TRACE_FIRST="+strconv.Itoa(acked))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		batches := 2 + rng.IntN(6)
		for i := 0; lines.Scan(); i++ {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("round %d: %s", round, lines.Text())
			}
			acked = n
			if i == batches {
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond) // into the next batch
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		l, err := Open(dir, Options{Budget: 1 << 30})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := numbers(t, l, time.Time{}, time.Time{})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		got = slices.Compact(got)
		if len(got) < acked || got[acked-1] != acked-1 {
			t.Fatalf("round %d: %d rows acknowledged, %d there", round, acked, len(got))
		}
	}
	t.Logf("%d rows acknowledged", acked)
}

// TestB50NewestFileCut: the end of the newest file is missing, as after a crash of the machine.
func TestB50NewestFileCut(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	for n := range 300 {
		l.Observe(sample(time.Now(), n))
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir() // as it is on disk at this moment
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	cut := 0
	for _, e := range must(os.ReadDir(copied)) {
		if !strings.HasSuffix(e.Name(), ".mem") {
			continue
		}
		path := filepath.Join(copied, e.Name())
		data := must(os.ReadFile(path))
		end := len(data)
		for end > 0 && data[end-1] == 0 {
			end--
		}
		if err := os.Truncate(path, int64(end-3)); err != nil {
			t.Fatal(err)
		}
		cut++
	}
	if cut != 1 {
		t.Fatalf("%d write-ahead logs", cut)
	}
	l2 := open(t, copied, Options{})
	got := numbers(t, l2, time.Time{}, time.Time{})
	if len(got) > 300 {
		t.Errorf("%d rows", len(got))
	}
	l2.Observe(sample(time.Now(), 1000))
	if err := l2.Flush(); err != nil {
		t.Fatal(err)
	}
	if again := numbers(t, l2, time.Time{}, time.Time{}); len(again) != len(got)+1 {
		t.Errorf("%d rows after one more", len(again))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
