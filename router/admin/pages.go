package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
)

// maxWorst bounds how many decisions one answer holds.
const maxWorst = 100

func (p *pages) health(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }

func (p *pages) ready(w http.ResponseWriter, _ *http.Request) {
	if p.Ready != nil {
		if err := p.Ready(); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+telemetry.Clean(err.Error()))
			return
		}
	}
	plain(w, http.StatusOK, "ready")
}

func (p *pages) index(w http.ResponseWriter, _ *http.Request) {
	list := []string{"/explain?last=1", "/explain?id=ID", "/explain?worst=10", "/endpoints", "/policies", "/healthz", "/readyz"}
	if p.Trace != nil {
		list = append(list, "/trace?since=24h")
	}
	if p.Metrics != nil {
		list = append(list, "/metrics")
	}
	if p.Profile {
		list = append(list, "/debug/pprof/")
	}
	plain(w, http.StatusOK, strings.Join(list, "\n"))
}

// explain answers with one decision (id, last) or several (worst), as JSON or, with format=text, as
// the command prints it.
func (p *pages) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	id, last, worst := query.Get("id"), query.Get("last"), query.Get("worst")
	var found []*Explained
	var answer any
	switch {
	case id != "" && last == "" && worst == "":
		parsed, ok := router.ParseID(id)
		if !ok {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("%s: no decision id; they look like d-1x7k2m-8f", telemetry.Clean(id)))
			return
		}
		x := p.Ring.Get(parsed)
		if x == nil {
			refuse(w, http.StatusNotFound, id+": not kept: the newest decisions are, and failed, missed and exploratory ones longer; newest: presage explain --last")
			return
		}
		found, answer = []*Explained{x}, x
	case last != "" && id == "" && worst == "":
		x := p.Ring.Last()
		if x == nil {
			refuse(w, http.StatusNotFound, "no decision yet: no request has been routed since the start")
			return
		}
		found, answer = []*Explained{x}, x
	case worst != "" && id == "" && last == "":
		n, err := strconv.Atoi(worst)
		if err != nil || n < 1 || n > maxWorst {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("worst: %s: not a number from 1 to %d", telemetry.Clean(worst), maxWorst))
			return
		}
		found = p.Ring.Worst(n)
		answer = map[string]any{"decisions": found}
	default:
		refuse(w, http.StatusBadRequest, "explain: give one of id=ID, last=1 or worst=N")
		return
	}
	switch format := query.Get("format"); format {
	case "", "json":
		answerJSON(w, http.StatusOK, answer)
	case "text":
		var b strings.Builder
		for _, x := range found {
			if err := x.Text(&b, TextOptions{All: query.Get("all") != ""}); err != nil {
				refuse(w, http.StatusInternalServerError, err.Error())
				return
			}
		}
		plain(w, http.StatusOK, strings.TrimSuffix(b.String(), "\n"))
	default:
		refuse(w, http.StatusBadRequest, "format: "+telemetry.Clean(format)+": json or text")
	}
}

func (p *pages) policies(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	out := struct {
		Current   string  `json:"current"`
		Fallbacks uint64  `json:"fallbacks"` // decisions that the policy failed to make
		LastPanic string  `json:"last_panic,omitempty"`
		Policies  []entry `json:"policies"`
	}{p.Router.Policy().Name(), p.Router.Fallbacks.Load(), telemetry.Clean(p.Router.LastPanic()), []entry{}}
	for _, name := range p.Policies.Names() {
		out.Policies = append(out.Policies, entry{name, p.Policies[name].About})
	}
	answerJSON(w, http.StatusOK, out)
}

// refuse answers with an error as JSON, which [Client] reads.
func refuse(w http.ResponseWriter, status int, why string) {
	answerJSON(w, status, map[string]string{"error": why})
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // a value that JSON cannot say, as NaN: a fault of ours
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have left
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the client may have left
}
