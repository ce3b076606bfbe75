package emulator

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// page writes metrics in Prometheus' text format.
type page struct {
	buf     []byte
	name    string // of the family being written, with its prefix
	labels  string // of every sample, without braces
	created string // time the process started; empty: no _created series
}

// family begins a metric.
func (p *page) family(name, kind, help string) {
	p.name = name
	p.header(name, kind, help)
}

func (p *page) header(name, kind, help string) {
	p.buf = append(p.buf, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// value formats as Python does for whole numbers.
func value(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

// join adds further labels before or after the common ones.
func (p *page) join(more string) string {
	switch {
	case more == "" && p.labels == "":
		return ""
	case more == "":
		return "{" + p.labels + "}"
	case p.labels == "":
		return "{" + more + "}"
	}
	return "{" + p.labels + "," + more + "}"
}

func (p *page) sample(suffix, labels string, v float64) {
	p.buf = append(p.buf, p.name+suffix+p.join(labels)+" "+value(v)+"\n"...)
}

func (p *page) gauge(name, help string, v float64) {
	p.family(name, "gauge", help)
	p.sample("", "", v)
}

// counter writes one series; name ends in _total.
func (p *page) counter(name, help string, v float64) {
	p.family(name, "counter", help)
	p.sample("", "", v)
	p.birth(strings.TrimSuffix(name, "_total"), help, "")
}

// series is one value of a metric that has several.
type series struct {
	label string
	v     float64
}

// counters writes several series of one counter.
func (p *page) counters(name, help string, all ...series) {
	p.family(name, "counter", help)
	labels := make([]string, len(all))
	for i, s := range all {
		p.sample("", s.label, s.v)
		labels[i] = s.label
	}
	p.birth(strings.TrimSuffix(name, "_total"), help, labels...)
}

func (p *page) gauges(name, help string, all ...series) {
	p.family(name, "gauge", help)
	for _, s := range all {
		p.sample("", s.label, s.v)
	}
}

// birth writes the _created gauge that Python's client adds to counters and histograms.
func (p *page) birth(name, help string, labels ...string) {
	if p.created == "" {
		return
	}
	p.header(name+"_created", "gauge", help)
	for _, l := range labels {
		p.buf = append(p.buf, name+"_created"+p.join(l)+" "+p.created+"\n"...)
	}
}

func (p *page) histogram(name, help string, h *histogram) {
	p.family(name, "histogram", help)
	var sum uint64
	for i, n := range h.counts {
		sum += n
		le := "+Inf"
		if i < len(h.bounds) {
			le = value(h.bounds[i])
		}
		p.sample("_bucket", `le="`+le+`"`, float64(sum))
	}
	p.sample("_count", "", float64(h.n))
	p.sample("_sum", "", h.sum)
	p.birth(name, help, "")
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// metrics answers GET /metrics.
func (e *Emulator) metrics(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	text := e.frozen()
	if text == nil {
		e.advance(e.clock()) // gauges as of the last step, not of the last event
		e.rearm()
		text = e.pageNow()
	}
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

// pageNow renders the page. e.mu is held.
func (e *Emulator) pageNow() []byte {
	model := `model_name="` + labelEscaper.Replace(e.cfg.Model) + `"`
	p := &page{}
	if e.cfg.Dialect == SGLang {
		e.sglang(p, model)
	} else {
		p.created = strconv.FormatFloat(float64(e.start.UnixNano())/1e9, 'e', -1, 64)
		e.vllm(p, model)
	}
	e.own(p)
	return p.buf
}

// own writes what only an emulator has to say.
func (e *Emulator) own(p *page) {
	p.labels = ""
	late := e.lateness.late()
	p.gauges("emulator:step_lateness_seconds", "How late the engine was woken, since the start.",
		series{`quantile="0.5"`, late.P50.Seconds()}, series{`quantile="0.99"`, late.P99.Seconds()}, series{`quantile="1"`, late.Max.Seconds()})
	p.gauge("emulator:speed_ratio", "Engine seconds per second.", e.cfg.Speed)
	p.gauge("emulator:uptime_seconds", "Time since the start.", time.Since(e.start).Seconds())
}
