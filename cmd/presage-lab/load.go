package main

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/load"
)

type loadCommand struct {
	Target string `default:"http://127.0.0.1:10000" placeholder:"URL" help:"Gateway or engine to ask (${default})." group:"Target"`
	Model  string `required:"" help:"Model, as requests name it." group:"Target"`
	Engine string `enum:"real,emulated" default:"real" help:"What answers: real (vLLM, SGLang) or emulated (${default})." group:"Target"`
	Most   int    `default:"512" help:"Requests open at a time; one that is due meanwhile is not sent and counts as missed (${default})." group:"Target"`

	Rate     float64       `default:"22" help:"Requests per second, as a Poisson process (${default})." group:"Load"`
	Duration time.Duration `default:"25s" help:"Length of the load (${default})." group:"Load"`
	Warmup   time.Duration `default:"0s" help:"Its first part, which is not counted." group:"Load"`
	Groups   int           `default:"14" help:"Groups of requests that share a prefix (${default})." group:"Load"`
	Prefix   string        `default:"512-1536" placeholder:"N-M" help:"Tokens of a prefix (${default})." group:"Load"`
	Question string        `default:"32-256" placeholder:"N-M" help:"Prompt tokens after the prefix (${default})." group:"Load"`
	Output   string        `default:"16-96" placeholder:"N-M" help:"Tokens of an answer (${default})." group:"Load"`
	Seed     uint64        `default:"1" help:"Of arrivals, lengths and choices (${default})." group:"Load"`
	Text     uint64        `default:"0" help:"Of the text alone: other texts, same arrivals and lengths, find no cache of an earlier run." group:"Load"`

	SLOTTFT time.Duration `name:"slo-ttft" default:"200ms" help:"Time to the first token that counts as in SLO; sent with each request (${default})." group:"Load"`
	SLOITL  time.Duration `name:"slo-itl" default:"20ms" help:"Mean gap between tokens that counts as in SLO; sent too (${default})." group:"Load"`

	JSON bool `name:"json" help:"Print one JSON object on the last line." group:"Output"`
}

// Run sends the load and sums up the answers. It fails if no request got one.
func (c *loadCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	w, err := c.workload()
	if err != nil {
		return command.Usage(err)
	}
	client := load.NewClient(strings.TrimSuffix(c.Target, "/"), c.Model, w.SLO)
	defer client.Close()
	client.Most = c.Most
	if c.Engine == "real" {
		client.Kind = load.Real
	}
	var tally load.Tally
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		client.Send(ctx, w, w.Duration, &tally)
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case now := <-tick.C:
			elapsed := min(now.Sub(began), w.Duration)
			s := tally.SoFar(w.SLO, elapsed)
			t.Progress(now, fmt.Sprintf("%s %.0f s   %d answers  in SLO %s",
				t.Bar(elapsed.Seconds()/w.Duration.Seconds(), 16), elapsed.Seconds(), s.OK, percent(s.Attainment)))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.report(t, w, tally.Outcomes())
}

// report prints what became of the requests after the warm-up.
func (c *loadCommand) report(t *terminal.Terminal, w *load.Workload, all []load.Outcome) error {
	var counted []load.Outcome
	unsent := 0
	for _, o := range all {
		if o.At < c.Warmup {
			continue
		}
		counted = append(counted, o)
		if o.Err == load.ErrCrowded { //nolint:errorlint // made by the client itself, never wrapped
			unsent++
		}
	}
	s := load.Sum(counted, w.SLO, w.Duration-c.Warmup)
	t.Result("%d requests, %d answered, %d failed, %d of them not sent", s.Requests, s.OK, s.Requests-s.OK, unsent)
	t.Result("in SLO %s (TTFT %v, ITL %v)   goodput %.1f/s   cached %s of the prompts", fraction(s.Attainment), c.SLOTTFT, c.SLOITL, s.Goodput, percent(s.HitRatio))
	t.Result("TTFT  mean %s  p50 %s  p90 %s  p99 %s", milliseconds(s.TTFTMean), milliseconds(s.TTFTP50), milliseconds(s.TTFTP90), milliseconds(s.TTFTP99))
	t.Result("ITL   p50 %s  p90 %s", fine(s.ITLP50), fine(s.ITLP90))
	for _, err := range load.Failures(counted) {
		t.Note("failed: %v", err)
	}
	if c.JSON {
		if err := t.JSON(loadJSON{
			scoreJSON: newScoreJSON(&s), TTFTMean: number(s.TTFTMean * 1e3), ITLP90: number(s.ITLP90 * 1e3),
			Failed: s.Requests - s.OK, Unsent: unsent,
		}); err != nil {
			return err
		}
	}
	if s.OK == 0 {
		return fmt.Errorf("%s: no request was answered; see whether the gateway and the engines run", c.Target)
	}
	return nil
}

// loadJSON is the result for programs. What has no value is null.
type loadJSON struct {
	scoreJSON
	TTFTMean *float64 `json:"ttft_mean_ms"`
	ITLP90   *float64 `json:"itl_p90_ms"`
	Failed   int      `json:"failed"`
	Unsent   int      `json:"unsent"` // of the failed ones
}

// fraction writes a share to a tenth of a percent.
func fraction(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", share*100)
}

// workload makes the load. Its errors are of usage.
func (c *loadCommand) workload() (*load.Workload, error) {
	u, err := url.Parse(c.Target)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("--target %s: no URL of a server; write one as http://127.0.0.1:10000", c.Target)
	case c.Rate <= 0 || c.Rate > 1e4 || math.IsNaN(c.Rate):
		return nil, fmt.Errorf("--rate %v: not between 0 and 10000; write requests per second", c.Rate)
	case c.Duration <= 0 || c.Duration > 24*time.Hour:
		return nil, fmt.Errorf("--duration %v: not between 0 and 24h; write a length as 25s", c.Duration)
	case c.Warmup < 0 || c.Warmup >= c.Duration:
		return nil, fmt.Errorf("--warmup %v: not within --duration %v; write a shorter one", c.Warmup, c.Duration)
	case c.SLOTTFT <= 0 || c.SLOITL <= 0:
		return nil, fmt.Errorf("--slo-ttft %v, --slo-itl %v: not positive; write lengths as 200ms", c.SLOTTFT, c.SLOITL)
	}
	if err := within("groups", c.Groups, 1, 100_000); err != nil {
		return nil, err
	}
	if err := within("most", c.Most, 1, 100_000); err != nil {
		return nil, err
	}
	g := load.Grouped{
		Groups: c.Groups, Rate: c.Rate, Duration: c.Duration, Seed: c.Seed, Text: c.Text,
		SLO: load.SLO{TTFT: c.SLOTTFT, ITL: c.SLOITL},
	}
	for _, r := range []struct {
		flag, text string
		to         *load.Range
	}{{"prefix", c.Prefix, &g.Prefix}, {"question", c.Question, &g.Question}, {"output", c.Output, &g.Output}} {
		if *r.to, err = tokenRange(r.text); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", r.flag, r.text, err)
		}
	}
	return g.Workload(), nil
}

// mostTokens is more than any engine takes.
const mostTokens = 1_000_000

// tokenRange reads 512-1536, or 512 for just that.
func tokenRange(text string) (load.Range, error) {
	low, high, ok := strings.Cut(text, "-")
	if !ok {
		high = low
	}
	least, err := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err != nil || err2 != nil || least < 1 || most < least || most > mostTokens {
		return load.Range{}, fmt.Errorf("no range of tokens; write the least and the most, from 1 to %d, as 512-1536", mostTokens)
	}
	return load.Range{Min: least, Max: most}, nil
}
