package sensitivity

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router/outlier"
)

// Dimensions are all there are. What a run is without them is: pages fresh every 200 ms, a ledger and
// labels without delay, forecasts as learned per class from the fitted laws of the hardware, a fading
// mean for the length of answers, the router's own prefix index, one router.
func Dimensions() []Dimension {
	return []Dimension{
		{"scrapes", "age of the engines' pages when the router gets them", []string{"50ms", "200ms", "1s"}, scrapes},
		{"ledger", "time until a dispatch is seen by the ledger and the prefix index, or until its first token", []string{"50ms", "200ms", "1s"}, ledger},
		{"error", "sigma of a log-normal factor on all forecasts of an endpoint, drawn for every decision and endpoint", []string{"0.1", "0.2", "0.4"}, errs(false, false)},
		{"error-told", "the same, the sigma of differences that the policy is told raised as if the learner had found it", []string{"0.1", "0.2", "0.4"}, errs(false, true)},
		{"bias", "sigma of a log-normal factor on all forecasts of an endpoint, drawn once per endpoint", []string{"0.1", "0.2", "0.4"}, errs(true, false)},
		{"labels", "time until what a label teaches is known", []string{"1s", "10s"}, labels},
		{"answers", "what is known of the length of an answer", []string{"exact"}, answers},
		{"index", "shares of the router's matches that are missed or claimed without being there, or the engines' true caches", []string{"missed=0.05", "missed=0.2", "claimed=0.05", "claimed=0.2", "true"}, index},
		{"routers", "routers that do not know of each other, requests dealt among them at random", []string{"2", "4"}, routers},
		{"learning", "what the predictor starts from and learns", []string{"off-generic", "off-exact", "generic", "pooled"}, learning},
		{"terms", "knobs of the policy: terms of its cost switched off", []string{"decode=0", "stall=0", "kv=0", "slo=0", "margin=0"}, terms},
	}
}

const longest = time.Minute

func scrapes(value string) (Setting, error) {
	d, err := seconds(value, longest)
	return Setting{alter: func(r *run) error {
		r.ScrapeAge = d
		return nil
	}}, err
}

func ledger(value string) (Setting, error) {
	d, err := seconds(value, longest)
	return Setting{alter: func(r *run) error {
		l := &late{veil: veil{r.Policy}, by: d}
		r.Policy, r.Recorder, r.Observer = l, l, l
		r.Prefixes = &lateIndex{belief: freshIndex(), by: d}
		return nil
	}}, err
}

// freshIndex is as every run has one; its bound is above the caches of a hundred engines.
func freshIndex() belief { return prefix.NewIndex(prefix.Options{}) }

func errs(lasts, told bool) func(string) (Setting, error) {
	return func(value string) (Setting, error) {
		sigma, err := number(value, 0, 3)
		return Setting{alter: func(r *run) error {
			r.Policy = newNoise(r.Policy, sigma, lasts, told, r.Seed)
			return nil
		}}, err
	}
}

func labels(value string) (Setting, error) {
	d, err := seconds(value, time.Hour)
	return Setting{alter: func(r *run) error {
		r.LabelDelay = d
		return nil
	}}, err
}

func answers(value string) (Setting, error) {
	exact, err := oneOf(value, map[string]bool{"mean": false, "exact": true}, "mean", "exact")
	return Setting{alter: func(r *run) error {
		if exact {
			r.Policy = &lengths{veil: veil{r.Policy}}
		}
		return nil
	}}, err
}

func index(value string) (Setting, error) {
	if value == "true" {
		return Setting{alter: func(r *run) error {
			block := r.PrefixBlock
			if block == 0 {
				block = 64
			}
			x := &trueIndex{block: block, seer: r.Seer}
			r.Prefixes, r.Seer = x, x
			return nil
		}}, nil
	}
	what, text, _ := strings.Cut(value, "=")
	if what != "missed" && what != "claimed" {
		return Setting{}, fmt.Errorf("%q unknown; all: missed=SHARE, claimed=SHARE, true", value)
	}
	share, err := number(text, 0, 1)
	if err != nil {
		return Setting{}, fmt.Errorf("%s: %w", what, err)
	}
	return Setting{alter: func(r *run) error {
		if what == "missed" {
			r.Prefixes = newWrongIndex(freshIndex(), share, 0, r.Seed)
		} else {
			r.Prefixes = newWrongIndex(freshIndex(), 0, share, r.Seed)
		}
		return nil
	}}, nil
}

const mostRouters = 64

func routers(value string) (Setting, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostRouters {
		return Setting{}, fmt.Errorf("%q is no number of routers within 1 and %d", value, mostRouters)
	}
	return Setting{alter: func(r *run) error {
		for k := 1; k < n; k++ {
			p, err := r.arena.NewPolicy(r.policy, r.Config, r.Seed+uint64(k)<<32)
			if err != nil {
				return err
			}
			r.Peers = append(r.Peers, cluster.Peer{Policy: p, Learner: predictor.NewLearner(r.arena.Learner), Outliers: new(outlier.Detector)})
		}
		return nil
	}}, nil
}

func terms(value string) (Setting, error) {
	name, text, ok := strings.Cut(value, "=")
	if _, err := strconv.ParseFloat(text, 64); !ok || name == "" || err != nil {
		return Setting{}, fmt.Errorf("%q sets no knob, as decode=0 does", value)
	}
	return Setting{knobs: value}, nil
}
