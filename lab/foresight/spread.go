package foresight

import (
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
)

// Spread is how far forecasts of differences between endpoints are off: d of the package comment,
// over all decisions and pairs. Each pair counts in both directions, so mean and median are zero.
type Spread struct {
	Pairs  int     `json:"pairs"`
	Sigma  float64 `json:"sigma"`  // root of the mean square
	Robust float64 `json:"robust"` // 1.4826 times the median size
}

// Effect is what stays of an endpoint's error over 200 foreseen decisions: the mean, over them, of
// its log error less the mean log error of the endpoints of its class at the same decision.
type Effect struct {
	Windows int     `json:"windows"` // endpoints times spans of 200 decisions
	Mean    float64 `json:"mean"`    // size
	Max     float64 `json:"max"`
}

// Choice is how good an endpoint the least foretold TTFT names, alone.
type Choice struct {
	Decisions int     `json:"decisions"`
	Top1      float64 `json:"top1"` // share of decisions in which it is the best, or within 1 % of it
	RegretMS  float64 `json:"regret_ms"`
	Regret    float64 `json:"regret"` // in shares of the mean of the best
	RandomMS  float64 `json:"random_ms"`
}

// Figures are those of one time, TTFT or ITL, of one variant.
type Figures struct {
	Within Spread  `json:"within"` // pairs of one class
	Across Spread  `json:"across"` // pairs of two classes
	Effect Effect  `json:"effect"`
	Error  float64 `json:"error"` // median size of the log error, common part included
}

const (
	floorTTFT = 10e-3 // below it, times are taken as equal
	window    = 200
)

// side is one time of a moment: what was foretold and what would have been, as logarithms; NaN: none.
type side struct {
	classes []string
	error   []float64
}

// look makes the sides of all moments: of gives forecast and truth of one endpoint, in seconds.
func look(cases []moment, variant int, floor float64, of func(f *foretold, y *Future) (float64, float64)) []side {
	out := make([]side, 0, len(cases))
	for c := range cases {
		m := &cases[c]
		s := side{m.classes, make([]float64, len(m.classes))}
		for i := range s.error {
			f, y := of(&m.forecast[variant][i], &m.futures[i])
			s.error[i] = math.NaN()
			if f > 0 && y > 0 {
				s.error[i] = math.Log(max(f, floor) / max(y, floor))
			}
		}
		out = append(out, s)
	}
	return out
}

func figures(sides []side) (f Figures) {
	var within, across, size []float64
	for _, s := range sides {
		for i, e := range s.error {
			if e == e {
				size = append(size, math.Abs(e))
			}
			for j := range i {
				switch d := e - s.error[j]; {
				case d != d:
				case s.classes[i] == s.classes[j]:
					within = append(within, math.Abs(d))
				default:
					across = append(across, math.Abs(d))
				}
			}
		}
	}
	f.Within, f.Across, f.Effect = spread(within), spread(across), effect(sides)
	if len(size) > 0 {
		f.Error = stat.Median(size)
	}
	return f
}

func spread(sizes []float64) Spread {
	if len(sizes) == 0 {
		return Spread{}
	}
	var squares float64
	for _, d := range sizes {
		squares += d * d
	}
	return Spread{len(sizes), math.Sqrt(squares / float64(len(sizes))), 1.4826 * stat.Median(sizes)}
}

func effect(sides []side) (f Effect) {
	for ; len(sides) >= window; sides = sides[window:] {
		n := len(sides[0].error)
		sum, count := make([]float64, n), make([]float64, n)
		for _, s := range sides[:window] {
			for i, e := range s.error {
				if mean, k := s.mean(s.classes[i]); k > 1 && e == e {
					sum[i] += e - mean
					count[i]++
				}
			}
		}
		for i := range sum {
			if count[i] > 0 {
				v := math.Abs(sum[i] / count[i])
				f.Mean += v
				f.Max = max(f.Max, v)
				f.Windows++
			}
		}
	}
	if f.Windows > 0 {
		f.Mean /= float64(f.Windows)
	}
	return f
}

// mean is the mean log error of a class.
func (s *side) mean(class string) (mean float64, n int) {
	for i, e := range s.error {
		if s.classes[i] == class && e == e {
			mean += e
			n++
		}
	}
	return mean / float64(max(n, 1)), n
}

// choose judges what the least foretold TTFT would have picked.
func choose(cases []moment, variant int) (c Choice) {
	var best float64
	for k := range cases {
		m := &cases[k]
		pick, least, mean, n := -1, math.Inf(1), 0.0, 0.0
		for i := range m.futures {
			y := m.futures[i].TTFT
			if y == 0 {
				continue
			}
			if pick < 0 || m.forecast[variant][i].First < m.forecast[variant][pick].First {
				pick = i
			}
			least, mean, n = min(least, y), mean+y, n+1
		}
		if pick < 0 {
			continue
		}
		c.Decisions++
		best += least
		c.RegretMS += 1e3 * (m.futures[pick].TTFT - least)
		c.RandomMS += 1e3 * (mean/n - least)
		if m.futures[pick].TTFT <= 1.01*least {
			c.Top1++
		}
	}
	if c.Decisions > 0 {
		n := float64(c.Decisions)
		c.Regret = c.RegretMS / 1e3 / best
		c.RegretMS, c.RandomMS, c.Top1 = c.RegretMS/n, c.RandomMS/n, c.Top1/n
	}
	return c
}

// Labels are the errors of what was foretold of the requests that were routed, whose clients stayed
// and whose labels were not spoiled.
type Labels struct {
	N        int     `json:"n"`
	Error    float64 `json:"error"`    // median size of the log error
	Mean     float64 `json:"mean"`     // mean size
	Covered  float64 `json:"covered"`  // share within the foretold 90 % quantile
	Coverage float64 `json:"coverage"` // the least of it, over spans of 500
}

func judged(labels []label) (l Labels) {
	l.N = len(labels)
	if l.N == 0 {
		return l
	}
	l.Error, l.Mean = stat.Median(sizes(labels)), stat.Mean(sizes(labels))
	l.Coverage = 1
	const span = 500
	for k := range slices.Chunk(labels, span) {
		c := covered(k)
		l.Covered += c * float64(len(k)) / float64(l.N)
		if len(k) == span {
			l.Coverage = min(l.Coverage, c)
		}
	}
	return l
}

func covered(labels []label) float64 {
	var n float64
	for _, l := range labels {
		if l.within {
			n++
		}
	}
	return n / float64(len(labels))
}

func sizes(labels []label) []float64 {
	out := make([]float64, len(labels))
	for i, l := range labels {
		out[i] = math.Abs(l.error)
	}
	return out
}
