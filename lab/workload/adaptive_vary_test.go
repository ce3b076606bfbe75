package workload

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

var vary = flag.Bool("vary", false, "play the adaptive policy with its constants halved and doubled")

// constants are those of the adaptive policy that were chosen in the lab, each with how it is scaled.
func constants() map[string]func(o *adaptive.Options, factor float64) {
	all := map[string]func(*adaptive.Options, float64){
		"slope":  func(o *adaptive.Options, f float64) { o.Curve.Slope *= f },
		"centre": func(o *adaptive.Options, f float64) { o.Curve.Centre *= f },
		"burst window": func(o *adaptive.Options, f float64) {
			b := o.Watches[1].Detector.(*adaptive.Burst)
			b.Window = time.Duration(f * float64(b.Window))
		},
		"burst memory": func(o *adaptive.Options, f float64) {
			b := o.Watches[1].Detector.(*adaptive.Burst)
			b.Memory = time.Duration(f * float64(b.Memory))
		},
	}
	d := adaptive.Defaults(router.Params{})
	for i := range d.Watches {
		name := d.Watches[i].Detector.Name()
		all[name+" gain"] = func(o *adaptive.Options, f float64) { o.Watches[i].Gain *= f }
		all[name+" thresholds"] = func(o *adaptive.Options, f float64) {
			w := &o.Watches[i]
			w.Enter = min(w.Enter*f, 1)
			w.Exit = min(w.Exit*f, 0.9*w.Enter)
		}
		all[name+" times"] = func(o *adaptive.Options, f float64) {
			for _, t := range []*time.Duration{&o.Watches[i].Up, &o.Watches[i].Down, &o.Watches[i].Dwell} {
				*t = time.Duration(f * float64(*t))
			}
		}
	}
	for i := range d.Scorers {
		all["part of "+d.Scorers[i].Scorer.Name()] = func(o *adaptive.Options, f float64) { o.Scorers[i].Part *= f }
	}
	return all
}

// TestAdaptiveConstants prints, with -vary -v, what halving and doubling each constant does to the
// attainment of three scenarios; without, it checks that every variation is a valid policy.
func TestAdaptiveConstants(t *testing.T) {
	cells := []struct {
		name string
		load float64
	}{{"herd", 1.6}, {"bursts", 0.9}, {"tenants", 1}, {"codechat", 1}}
	show := func(name string, factor float64, change func(*adaptive.Options, float64)) {
		var got []float64
		for _, c := range cells {
			s, err := Builtin(c.name)
			if err != nil {
				t.Fatal(err)
			}
			var met []float64
			for seed := range uint64(*seeds) {
				o := adaptive.Defaults(router.Params{})
				change(&o, factor)
				p, err := adaptive.New(o)
				if err != nil {
					t.Fatalf("%s x %v: %v", name, factor, err)
				}
				if *vary {
					met = append(met, play(t, s, c.load, 301+seed, p).attainment)
				}
			}
			got = append(got, stat.Mean(met))
		}
		if *vary {
			t.Logf("%-22s x %.1f  herd@1.6 %6.2f  bursts@0.9 %6.2f  tenants@1 %6.2f  codechat@1 %6.2f", name, factor, got[0], got[1], got[2], got[3])
		}
	}
	show("as published", 1, func(*adaptive.Options, float64) {})
	all := constants()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		show(name, 0.5, all[name])
		show(name, 2, all[name])
	}
}
