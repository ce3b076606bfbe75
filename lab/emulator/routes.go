package emulator

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/presage-router/presage/lab/engine"
)

const version = "0.32.0" // of the engine that is emulated

func (e *Emulator) routes() {
	e.mux = http.NewServeMux()
	e.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { e.complete(w, r, true) })
	e.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { e.complete(w, r, false) })
	e.mux.HandleFunc("GET /v1/models", e.models)
	e.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if !e.loaded() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": version})
	})
	e.mux.HandleFunc("GET /metrics", e.metrics)
	e.mux.HandleFunc("POST /v1/load_lora_adapter", e.loadLoRA)
	e.mux.HandleFunc("POST /v1/unload_lora_adapter", e.unloadLoRA)
	e.mux.HandleFunc("POST "+faultPath, e.fault)
	e.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	})
}

// loaded reports whether the model is there.
func (e *Emulator) loaded() bool { return time.Since(e.start) >= e.cfg.Load }

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// refuse answers with an error in the engine's form.
func refuse(w http.ResponseWriter, err error) {
	var p *problem
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &p):
	case errors.As(err, &long):
		p = &problem{http.StatusRequestEntityTooLarge, "BadRequestError", "", fmt.Sprintf("The request body is longer than %d bytes.", long.Limit)}
	case errors.Is(err, engine.ErrTooLong):
		p = badRequest("input_tokens", "The prompt does not fit into the KV cache.")
	case errors.Is(err, errFull), errors.Is(err, errClosed), errors.Is(err, engine.ErrDead):
		p = &problem{http.StatusServiceUnavailable, "ServiceUnavailableError", "", err.Error()}
	default:
		p = badRequest("", "%v", err)
	}
	type info struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	i := info{Message: p.message, Type: p.kind, Code: p.status}
	if p.param != "" {
		i.Param = &p.param
	}
	writeJSON(w, p.status, map[string]info{"error": i})
}

// complete answers a request for text.
func (e *Emulator) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	if !e.loaded() {
		refuse(w, &problem{http.StatusServiceUnavailable, "ServiceUnavailableError", "", "The model is being loaded."})
		return
	}
	if e.fails() {
		refuse(w, &problem{http.StatusInternalServerError, "InternalServerError", "", "EngineCore encountered an issue."})
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, e.cfg.MaxBody))
	if err != nil {
		refuse(w, err)
		return
	}
	a, err := e.parse(data, chat)
	if err != nil {
		refuse(w, err)
		return
	}
	streams, err := e.submit(a)
	if err != nil {
		refuse(w, err)
		return
	}
	reply := newReply(e, a, r.Header.Get("X-Request-Id"), streams)
	if a.Stream {
		err = reply.stream(w, r)
	} else {
		err = reply.whole(w, r)
	}
	if err != nil {
		e.cancel(streams)
		panic(http.ErrAbortHandler) // the client must not take it for the end
	}
}

func (e *Emulator) models(w http.ResponseWriter, _ *http.Request) {
	type card struct {
		ID      string  `json:"id"`
		Object  string  `json:"object"`
		Created int64   `json:"created"`
		OwnedBy string  `json:"owned_by"`
		Root    string  `json:"root"`
		Parent  *string `json:"parent"`
		MaxLen  *int    `json:"max_model_len"`
	}
	owner := e.cfg.Dialect.String()
	created := e.start.Unix()
	list := []card{{e.cfg.Model, "model", created, owner, e.cfg.Model, nil, &e.cfg.MaxLen}}
	for _, name := range e.adapterNames() {
		list = append(list, card{name, "model", created, owner, name, &e.cfg.Model, nil})
	}
	writeJSON(w, http.StatusOK, struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{"list", list})
}
