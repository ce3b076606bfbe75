package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/models"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

var demoClass = unique.Make(fleet.Class{Model: "demo", Engine: "vllm", TP: 1})

// school teaches a learner n requests of a class.
func school(class fleet.ClassID, n int) *predictor.Learner {
	l := predictor.NewLearner(predictor.Options{Prior: seed.Prior})
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		o := features.Observation{
			At: time.Now(), Schema: features.Schema(), Endpoint: "e", Picked: "e", Stream: true, Status: 200, Cause: fleet.Complete,
			Where: features.Where{Class: class, Slot: -1}, OutputTokens: 100, CachedTokens: features.Unknown, Said: features.Nothing(),
		}
		prompt := float32(100 + rng.IntN(4000))
		o.X[features.Prompt], o.X[features.Uncached] = prompt, prompt
		o.TTFT = time.Duration((.3 + 1e-4*float64(prompt)) * math.Exp(.1*rng.NormFloat64()) * 1e9)
		o.ITL = 40 * time.Millisecond
		o.E2E = o.TTFT + 99*o.ITL
		l.First(&o)
		l.End(&o)
	}
	return l
}

// said are the forecasts for some requests of a class, on no particular endpoint.
func said(f *predictor.Frozen, class fleet.ClassID) []features.Forecast {
	var b predictor.Batch
	b.Size(5)
	for i := range b.X {
		b.X[i], b.At[i] = features.Vector{}, features.Where{Class: class, Slot: -1}
		b.X[i][features.Prompt], b.X[i][features.Uncached] = float32(200*i+1), float32(200*i+1)
	}
	f.Predict(&b)
	return b.Fore
}

func same(a, b []features.Forecast) bool {
	for i := range a {
		for _, p := range [][2]features.Prediction{{a[i].TTFT, b[i].TTFT}, {a[i].ITL, b[i].ITL}} {
			for _, v := range [][2]float32{{p[0].Mean, p[1].Mean}, {p[0].P50, p[1].P50}, {p[0].P90, p[1].P90}, {p[0].P99, p[1].P99}} {
				if math.Abs(float64(v[0])-float64(v[1])) > 1e-9 {
					return false
				}
			}
		}
	}
	return true
}

func withModels(t *testing.T) *config.Config {
	c := testConfig()
	c.Models.Dir = filepath.Join(t.TempDir(), "models")
	return c
}

// put makes a learner's model the champion of a directory.
func put(t *testing.T, dir string, l *predictor.Learner, promote bool) string {
	t.Helper()
	r, err := models.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := l.Save()
	m, err := r.Put(models.Manifest{}, &s, time.Now())
	if err == nil && promote {
		err = r.Promote(m.Name, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.Name
}

// TestColdForecastsRankHardware: a service that has learned nothing sends its first request to the
// faster hardware, wherever that stands in the list.
func TestColdForecastsRankHardware(t *testing.T) {
	fast := &fleet.Endpoint{Name: "h100", Addr: netip.MustParseAddrPort("127.0.0.1:1"), Model: "llama-3.1-8b", Engine: "vllm", GPU: "H100", TP: 1}
	slow := &fleet.Endpoint{Name: "a100", Addr: netip.MustParseAddrPort("127.0.0.1:2"), Model: "llama-3.1-8b", Engine: "vllm", GPU: "A100", TP: 1}
	for _, list := range [][]*fleet.Endpoint{{fast, slow}, {slow, fast}} {
		c := testConfig()
		c.Policy = "predictive"
		s, err := New(c, Deps{Endpoints: list})
		if err != nil {
			t.Fatal(err)
		}
		var snap fleet.Snapshot
		s.fleet.Snapshot(time.Now(), &snap)
		p50 := map[string]float32{}
		for i := range snap.States {
			p50[snap.States[i].Name] = said(s.tutor.handle.Load(), snap.States[i].Class)[4].TTFT.P50
		}
		if !(p50["h100"] > 0 && p50["h100"] < p50["a100"]) {
			t.Errorf("first forecasts: %v", p50)
		}
		var fl router.Flight
		if err := s.router.Route(&router.Ask{Now: time.Now(), Req: &request.Request{Model: "llama-3.1-8b", PromptTokens: 2000, PromptBytes: 8000, Choices: 1, Stream: true}}, &fl); err != nil {
			t.Fatal(err)
		}
		if fl.Picked.Name != "h100" {
			t.Errorf("the first request went to %s", fl.Picked.Name)
		}
		s.Stop()
	}
}

// TestRestartKeepsForecasts: what a service learned is what it begins with the next time.
func TestRestartKeepsForecasts(t *testing.T) {
	c := withModels(t)
	e := newEngine(t, "e1")
	cold := said(predictor.NewLearner(predictor.Options{Prior: seed.Prior}).Freeze(), demoClass)
	l := newLab(t, c, Deps{Endpoints: endpoints(e)})
	stop := l.traffic(4)
	l.eventually("lessons", func() bool { return l.tutor.seen.Load().Counts.First >= 60 })
	stop()
	l.settled()
	l.close()
	before := said(l.tutor.learner.Freeze(), demoClass)
	if same(before, cold) {
		t.Fatal("nothing was learned")
	}
	again := newLab(t, c, Deps{Endpoints: endpoints(e)})
	if after := said(again.tutor.handle.Load(), demoClass); !same(before, after) {
		t.Errorf("before and after:\n%+v\n%+v", before, after)
	}
	if got := again.metric(`presage_model_files_total{result="restored"}`); got != "1" {
		t.Errorf("restored: %q", got)
	}
}

// TestNewChampionComesIntoForce: at the start, while the service runs, and after what another champion
// had learned.
func TestNewChampionComesIntoForce(t *testing.T) {
	t.Parallel()
	c := withModels(t)
	first, second := school(demoClass, 50), school(demoClass, 400)
	put(t, c.Models.Dir, first, true)
	e := newEngine(t, "e1")
	l := newLab(t, c, Deps{Endpoints: endpoints(e)})
	if !same(said(l.tutor.handle.Load(), demoClass), said(first.Freeze(), demoClass)) {
		t.Error("the champion is not in use")
	}
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Fatalf("%+v", a)
	}
	put(t, c.Models.Dir, second, true)
	want := said(second.Freeze(), demoClass)
	l.eventually("the new champion", func() bool { return same(said(l.tutor.handle.Load(), demoClass), want) })
	const series = `presage_forecast_champion_info{class="demo vllm",kind=`
	l.eventually("its name", func() bool {
		_, page := l.admin("/metrics")
		return strings.Contains(page, series) && strings.Contains(page, `version="v2"} 1`)
	})
	if a := l.post(context.Background(), "hello"); !a.complete() {
		t.Fatalf("%+v", a)
	}
	l.settled()
	l.close()
	// What was learned on from v2 is no continuation of v3.
	third := school(demoClass, 100)
	put(t, c.Models.Dir, third, true)
	again := newLab(t, c, Deps{Endpoints: endpoints(e)})
	if !same(said(again.tutor.handle.Load(), demoClass), said(third.Freeze(), demoClass)) {
		t.Error("the champion promoted meanwhile is not in use")
	}
}

// notes is a log to be read.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// TestBadModelsAreRefused: at the start the service runs on its priors, later on what it has, and both
// are counted.
func TestBadModelsAreRefused(t *testing.T) {
	t.Parallel()
	good := school(demoClass, 50)
	for name, bad := range map[string]struct {
		spoil func(file []byte) []byte
		why   string
	}{
		"truncated": {func(b []byte) []byte { return b[:len(b)/2] }, "damaged"},
		"empty":     {func([]byte) []byte { return nil }, "damaged"},
		"foreign":   {func([]byte) []byte { return []byte("GIF89a, or what else there is") }, "not a model file"},
		"another schema": {func(b []byte) []byte {
			_, rest, _ := bytes.Cut(b, []byte("\n"))
			rest = bytes.ReplaceAll(rest, []byte(features.Schema()), []byte("v0-12345678"))
			return fmt.Appendf(nil, "presage-model 1 %x\n%s", sha256.Sum256(rest), rest)
		}, "made by another version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := withModels(t)
			model := put(t, c.Models.Dir, good, true)
			path := filepath.Join(c.Models.Dir, model+".model")
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(bad.spoil(whole)))
			// What a service saved is no better.
			write(t, filepath.Join(c.Models.Dir, models.Serving+".model"), string(bad.spoil(whole)))
			var log notes
			l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1")), Log: slog.New(slog.NewTextHandler(&log, nil))})
			if text := log.String(); strings.Count(text, "model refused") != 2 || strings.Count(text, bad.why) != 2 || !strings.Contains(text, path) {
				t.Errorf("logged: %s", text)
			}
			priors := said(predictor.NewLearner(predictor.Options{Prior: seed.Prior}).Freeze(), demoClass)
			if !same(said(l.tutor.handle.Load(), demoClass), priors) {
				t.Error("it does not run on priors")
			}
			const refused = `presage_model_files_total{result="refused"}`
			if got := l.metric(refused); got != "2" {
				t.Errorf("refused: %q", got)
			}
			if a := l.post(context.Background(), "hello"); !a.complete() {
				t.Errorf("%+v", a)
			}
			if name != "truncated" {
				return
			}
			write(t, path, string(whole))
			want := said(good.Freeze(), demoClass)
			l.eventually("the repaired champion", func() bool { return same(said(l.tutor.handle.Load(), demoClass), want) })
			write(t, path, string(bad.spoil(whole)))
			l.eventually("another refusal", func() bool { return l.metric(refused) == "3" })
			if !same(said(l.tutor.handle.Load(), demoClass), want) {
				t.Error("a bad file changed the model in use")
			}
		})
	}
}

// TestLearnedIsSavedMeanwhile: what was learned is on disk every few minutes, and written only when
// there is more of it.
func TestLearnedIsSavedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, err := openLibrary(&config.Models{Dir: dir}, slog.New(slog.DiscardHandler), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		f := new(fleet.Fleet)
		s := &Service{log: slog.New(slog.DiscardHandler), fleet: f, tutor: newTutor(f, predictor.Options{}), library: b}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.tutor.run(ctx) })
		wg.Go(func() { s.tend(ctx) })
		lesson := features.Observation{
			At: time.Now(), Schema: features.Schema(), Endpoint: "e", Picked: "e", Stream: true, Status: 200, Cause: fleet.Complete,
			Where: features.Where{Class: demoClass, Slot: -1}, TTFT: time.Second, Said: features.Nothing(),
		}
		for i, want := range []uint64{0, 1, 1, 2} {
			if i == 1 || i == 3 {
				s.tutor.First(&lesson)
			}
			time.Sleep(saveEvery + time.Second)
			if got := b.saved.Load(); got != want {
				t.Errorf("after %d periods: saved %d times, want %d", i+1, got, want)
			}
		}
		if m, state, err := b.Load(models.Serving); err != nil || m.Rows != 2 || len(state.Classes) != 1 {
			t.Errorf("%+v %v", m, err)
		}
		cancel()
		wg.Wait()
		if s.tutor.do(ctx, func(*predictor.Learner) { t.Error("it ran without a goroutine") }) {
			t.Error("a task was taken after the end")
		}
	})
}

func TestKeptFilesThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	c := testConfig()
	c.Models.Dir = filepath.Join(file, "models")
	if _, err := New(c, Deps{Endpoints: endpoints()}); err == nil || !strings.Contains(err.Error(), "models.dir: "+c.Models.Dir+": cannot keep models here: not a directory") {
		t.Error(err)
	}
	c.Models.Dir, c.Trace.Dir = "", filepath.Join(file, "trace")
	if _, err := New(c, Deps{Endpoints: endpoints()}); err == nil || !strings.Contains(err.Error(), "trace.dir: "+c.Trace.Dir+": cannot keep a trace here: not a directory") {
		t.Error(err)
	}
}
