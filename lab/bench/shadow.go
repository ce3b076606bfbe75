package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/presage-router/presage/internal/stat"
)

// ShadowResult is what shadow policies cost the service, see [ExtProc.RunShadow].
type ShadowResult struct {
	Body    int        `json:"body"`
	Pairs   int        `json:"pairs"`
	Without float64    `json:"cpu_us_per_request"` // of the service alone, the mean over pairs
	With    float64    `json:"cpu_us_per_request_shadowed"`
	Added   float64    `json:"added"` // share of the CPU without, the geometric mean over pairs: noise of both runs weighs the same
	CI95    [2]float64 `json:"added_ci95"`
}

// RunShadow measures what shadow policies add to the service's CPU per request: two services side by
// side, one with the shadows, are driven in turns of the length of a run, in pairs whose order
// alternates, so that what the machine does besides falls on both. The interval is Student's over the
// pairs, of which there must be two at least.
func (b *ExtProc) RunShadow(ctx context.Context, shadows []string, pairs int) (r ShadowResult, err error) {
	if pairs < 2 {
		return r, fmt.Errorf("%d pairs of runs give no interval; ask for two or more", pairs)
	}
	engines, err := startEngines(ctx, b.Endpoints, nil)
	if err != nil {
		return r, err
	}
	defer engines.stop()
	var rigs [2]*rig
	for i, with := range [][]string{nil, shadows} {
		if rigs[i], err = b.open(ctx, engines, with); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, rigs[i].close()) }()
	}
	workers := b.workers()
	for _, rig := range rigs {
		if _, _, err = drive(ctx, rig.driver, workers, b.Duration/warmup); err != nil {
			return r, err
		}
	}
	var cpu [2][]float64
	var added []float64
	for n := range pairs {
		var now [2]float64
		for turn := range 2 {
			i := (turn + n) % 2
			m, err := b.measure(ctx, rigs[i], workers)
			if err != nil {
				return r, err
			}
			now[i] = m.CPU
			cpu[i] = append(cpu[i], m.CPU)
		}
		added = append(added, math.Log(now[1]/now[0]))
	}
	in := stat.MeanInterval(added, 0.95)
	return ShadowResult{
		Body: b.Body, Pairs: pairs, Without: stat.Mean(cpu[0]), With: stat.Mean(cpu[1]),
		Added: math.Expm1(in.Mean), CI95: [2]float64{math.Expm1(in.Low), math.Expm1(in.High)},
	}, nil
}
