package extproc

import (
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/predictive"
)

// noting keeps the explanation of the last decision of the policy within.
type noting struct {
	router.Policy
	keep []bool
	why  router.Explanation
}

func (n *noting) Route(q *router.Query, d *router.Decision) error {
	err := n.Policy.Route(q, d)
	n.keep = append(n.keep[:0], q.Keep...)
	n.why = d.Why
	n.why.Values = append([]float32(nil), d.Why.Values...)
	n.why.Totals = append([]float32(nil), d.Why.Totals...)
	return err
}

// TestSLOHeadersToThePrice: whatever clients write into SLO headers, from the gateway to the decision:
// the request is routed, its costs are finite, and the price of the SLO is at most 10 % of the cheapest.
func TestSLOHeadersToThePrice(t *testing.T) {
	const ttft, itl = "x-llm-d-slo-ttft-ms", "x-llm-d-slo-tpot-ms"
	ms := time.Millisecond
	for _, c := range []struct {
		name    string
		headers []string
		want    request.SLO
		priced  bool
	}{
		{"none", nil, request.SLO{}, false},
		{"NaN", []string{ttft, "NaN", itl, "nan"}, request.SLO{}, false},
		{"Inf", []string{ttft, "Inf", itl, "-Infinity"}, request.SLO{}, false},
		{"negative", []string{ttft, "-5", itl, "-0.1"}, request.SLO{}, false},
		{"zero", []string{ttft, "0", itl, "0"}, request.SLO{}, false},
		{"overflow", []string{ttft, "1e999"}, request.SLO{}, false},
		{"empty", []string{ttft, "", itl, " "}, request.SLO{}, false},
		{"tiny", []string{ttft, "1e-9", itl, "1e-9"}, request.SLO{TTFT: ms, ITL: ms}, true},
		{"huge", []string{ttft, "1e300", itl, "1e300"}, request.SLO{TTFT: time.Hour, ITL: time.Hour}, false},
		{"only ttft", []string{ttft, "5"}, request.SLO{TTFT: 5 * ms}, true},
		{"only itl", []string{itl, "2"}, request.SLO{ITL: 2 * ms}, true},
		{"one of them NaN", []string{ttft, "NaN", itl, "2"}, request.SLO{ITL: 2 * ms}, true},
		{"aliases", []string{"x-slo-ttft-ms", "5", "x-slo-tpot-ms", "2"}, request.SLO{TTFT: 5 * ms, ITL: 2 * ms}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, err := predictive.Recipes().New("predictive", router.Params{})
			if err != nil {
				t.Fatal(err)
			}
			p := &noting{Policy: inner}
			l := newLab(t, labOptions{policy: p, forecast: new(predictor.Handle)})
			tr := l.run(errReset, join([]message{chat(fds, c.headers...), reqBody(chatBody, true)}, ok())...)
			if set, _, _ := tr.mutation(); set["x-gateway-destination-endpoint"] == "" {
				t.Fatalf("not routed: %q", tr.kinds())
			}
			if got := l.only().SLO; got != c.want {
				t.Errorf("SLO %v, want %v", got, c.want)
			}
			least, price := math.Inf(1), 0.0
			for i, k := range p.keep {
				row := p.why.Row(i)
				slo := float64(row[len(row)-1])
				total := float64(p.why.Totals[i])
				if !k || !(total > 0 && total < math.MaxFloat32) || !(slo >= 0) {
					t.Fatalf("endpoint %d, candidate %v: %v, total %v", i, k, row, total)
				}
				least, price = min(least, total-slo), max(price, slo)
			}
			if price > 0.1*least*1.0001 || (price > 0.01) != c.priced {
				t.Errorf("price %v ms where the cheapest costs %v", price, least)
			}
		})
	}
}
