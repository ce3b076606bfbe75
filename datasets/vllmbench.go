package datasets

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// benchColumns are the per-request arrays of one vLLM benchmark; a nil one is missing.
type benchColumns struct {
	model              string
	input, output      []float64
	ttft, start, total []float64
	itls               [][]float64
	errors             []string
}

// readVLLMBench reads the JSON of "vllm bench serve --save-detailed", old (no start times) and new:
// one array for each figure, equally long. Failed requests are left out, as their figures are zero.
func readVLLMBench(s *source, each func(*Row) error) error {
	d := newDocument(s)
	c := &benchColumns{}
	if ok, err := d.object(func(name string) error { return c.read(d, name) }); err != nil {
		return err
	} else if !ok {
		return s.fatal(0, "not a JSON object", "")
	}
	if err := d.end(); err != nil {
		return err
	}
	if err := c.check(s); err != nil {
		return err
	}
	for i := range c.input {
		row, bad := c.row(s, i)
		if err := emit(s, &bad, &row, each); err != nil {
			return err
		}
	}
	return nil
}

func (c *benchColumns) read(d *document, name string) (err error) {
	switch name {
	case "model_id":
		v, err := d.value()
		if err == nil && v.Kind() == '"' {
			b, _ := jsontext.AppendUnquote(nil, v)
			c.model = string(b)
		}
		return err
	case "input_lens":
		c.input, err = d.numbers(name)
	case "output_lens":
		c.output, err = d.numbers(name)
	case "ttfts":
		c.ttft, err = d.numbers(name)
	case "start_times":
		c.start, err = d.numbers(name)
	case "latencies":
		c.total, err = d.numbers(name)
	case "itls":
		c.itls = [][]float64{}
		_, err = d.array(func() error {
			gaps, err := d.numbers(name)
			c.itls = append(c.itls, gaps)
			return err
		})
	case "errors":
		c.errors = []string{}
		_, err = d.array(func() error {
			v, err := d.value()
			text := ""
			if err == nil && v.Kind() == '"' {
				b, _ := jsontext.AppendUnquote(nil, v)
				text = string(b)
			}
			c.errors = append(c.errors, text)
			return err
		})
	default:
		err = d.skip()
	}
	return err
}

// numbers reads an array of numbers; what is not a finite number becomes NaN.
func (d *document) numbers(name string) ([]float64, error) {
	out := []float64{}
	ok, err := d.array(func() error {
		v, err := d.value()
		if err != nil {
			return err
		}
		o := object{rec: &fault{}}
		x := o.real(name, v)
		if o.rec.reason == "negative" {
			x = -1
		} else if o.rec.reason != "" {
			x = math.NaN()
		}
		out = append(out, x)
		return nil
	})
	if err == nil && !ok {
		err = d.s.fatal(0, name+" is not an array", "")
	}
	return out, err
}

// check compares the arrays' lengths.
func (c *benchColumns) check(s *source) error {
	if c.input == nil || c.output == nil || c.ttft == nil || c.itls == nil {
		return s.fatal(0, "no per-request arrays (run with --save-detailed)", "")
	}
	for _, a := range []struct {
		name string
		n    int
		have bool
	}{
		{"output_lens", len(c.output), true}, {"ttfts", len(c.ttft), true}, {"itls", len(c.itls), true},
		{"errors", len(c.errors), c.errors != nil}, {"start_times", len(c.start), c.start != nil}, {"latencies", len(c.total), c.total != nil},
	} {
		if a.have && a.n != len(c.input) {
			return s.fatal(0, fmt.Sprintf("%s has %d entries, input_lens has %d", a.name, a.n, len(c.input)), "the arrays do not belong together: run the benchmark again")
		}
	}
	return nil
}

// row is the i-th request.
func (c *benchColumns) row(s *source, i int) (Row, fault) {
	o := object{rec: &fault{record: i + 1}}
	row := newRow(i + 1)
	row.Model = c.model
	if c.errors != nil && c.errors[i] != "" {
		o.skip("failed request")
		return row, *o.rec
	}
	figure := func(name string, x float64) float64 {
		switch {
		case math.IsNaN(x):
			o.fail(name, "", "not finite")
		case x < 0:
			o.fail(name, "", "negative")
		}
		return x
	}
	whole := func(name string, x float64) int {
		if x = figure(name, x); x != math.Trunc(x) || x > most {
			o.fail(name, fmt.Sprint(x), "not an integer")
			return 0
		}
		return int(x)
	}
	if c.start != nil {
		if at, ok := nanoseconds(figure("start_times", c.start[i])); ok {
			row.Arrival = o.arrival(s, at)
		} else {
			o.fail("start_times", fmt.Sprint(c.start[i]), "bad timestamp")
		}
	}
	row.Prompt, row.Output = whole("input_lens", c.input[i]), whole("output_lens", c.output[i])
	row.TTFT, row.Gaps = figure("ttfts", c.ttft[i]), c.itls[i]
	sum := 0.0
	for _, g := range row.Gaps {
		sum += figure("itls", g)
	}
	if row.Output > 1 {
		row.ITL = sum / float64(row.Output-1)
	}
	row.E2E = row.TTFT + sum
	if c.total != nil {
		row.E2E = figure("latencies", c.total[i])
	}
	return row, *o.rec
}
