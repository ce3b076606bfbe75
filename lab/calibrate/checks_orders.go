package calibrate

import (
	"context"
	"embed"
	"slices"
	"time"

	"github.com/presage-router/presage/lab/workload"
)

//go:embed orders/*.yaml
var orders embed.FS

// simulated says that the rows of a check are requests of simulations.
const simulated = "none: simulated requests"

// orderings holds fleets under real policies against the order that was measured on real fleets. Only
// orders are compared: the real fleets' engines and traffic are known roughly.
func (v *validation) orderings(ctx context.Context) error {
	for _, f := range []func(context.Context) error{v.tenants, v.sizes, v.decodes} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tenants: measured 6,944 tokens/s with an approximate prefix index, 4,429 by load only and at random.
func (v *validation) tenants(ctx context.Context) error {
	s, err := workload.Builtin("tenants")
	if err != nil {
		return err
	}
	s.Duration, s.Warmup = 200*time.Second, 40*time.Second
	o, err := contest(ctx, v.table, s, "3-2-2", "load", "least-request", "random")
	if err != nil {
		return err
	}
	prefix, load, least, random := o[0].TokensPerSecond, o[1].TokensPerSecond, o[2].TokensPerSecond, o[3].TokensPerSecond
	n := o[0].Requests + o[1].Requests + o[2].Requests + o[3].Requests
	v.add(Check{Name: "order 2: tokens/s, best without prefix index / with", Rows: n, Fitted: simulated, Error: max(load, least, random) / prefix, Limit: 1})
	v.add(Check{Name: "order 2: tokens/s, by load against random", Rows: n, Fitted: simulated, Error: max(load, least, random)/min(load, least, random) - 1, Limit: 0.10})
	return nil
}

// sizes: measured median E2E of 13.4 s with weights 3-2-2, 16.0 s with round robin, 16.4 s with 1-1-1.
func (v *validation) sizes(ctx context.Context) error {
	data, err := orders.ReadFile("orders/shared-sizes.yaml")
	if err != nil {
		return err
	}
	s, err := workload.Parse("shared-sizes.yaml", data)
	if err != nil {
		return err
	}
	o, err := contest(ctx, v.table, s, "3-2-2", "round-robin", "1-1-1")
	if err != nil {
		return err
	}
	n := o[0].Requests + o[1].Requests + o[2].Requests
	v.add(Check{Name: "order 8: median E2E, 3-2-2 / round robin", Rows: n, Fitted: simulated, Error: o[0].E2E50 / o[1].E2E50, Limit: 1})
	v.add(Check{Name: "order 8: median E2E, 3-2-2 / 1-1-1", Rows: n, Fitted: simulated, Error: o[0].E2E50 / o[2].E2E50, Limit: 1})

	if s, err = workload.Builtin("mixed-sizes"); err != nil {
		return err
	}
	s.Duration, s.Warmup = 150*time.Second, 30*time.Second
	if o, err = contest(ctx, v.table, s, "3-2-2", "round-robin"); err != nil {
		return err
	}
	v.add(Check{
		Name: "order 8 without shared beginnings: median E2E, 3-2-2 / round robin", Rows: o[0].Requests + o[1].Requests,
		Fitted: simulated, Error: o[0].E2E50 / o[1].E2E50,
	})
	return nil
}

// decodes: measured 7.0k against 6.8k tokens/s, near parity.
func (v *validation) decodes(ctx context.Context) error {
	data, err := orders.ReadFile("orders/decode.yaml")
	if err != nil {
		return err
	}
	s, err := workload.Parse("decode.yaml", data)
	if err != nil {
		return err
	}
	o, err := contest(ctx, v.table, s, "3-2-2", "least-request", "round-robin", "p2c", "random")
	if err != nil {
		return err
	}
	var rates []float64
	n := 0
	for i := range o {
		rates, n = append(rates, o[i].TokensPerSecond), n+o[i].Requests
	}
	v.add(Check{Name: "order 14: tokens/s, best against worst policy", Rows: n, Fitted: simulated, Error: slices.Max(rates)/slices.Min(rates) - 1, Limit: 0.05})
	return nil
}
