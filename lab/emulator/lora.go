package emulator

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Bounds of the adapters that a client may load.
const (
	maxAdapters    = 1024
	maxAdapterName = 256
)

// adapters are the LoRA adapters that a server knows, loaded into a slot or not.
type adapters struct {
	ids   map[string]int32
	names []string // by number - 1; a number is never given twice
}

func newAdapters(names []string) adapters {
	a := adapters{ids: make(map[string]int32, len(names))}
	for _, name := range names {
		a.add(name)
	}
	return a
}

func (a *adapters) add(name string) {
	if _, ok := a.ids[name]; !ok {
		a.names = append(a.names, name)
		a.ids[name] = int32(len(a.names))
	}
}

// list joins the names of adapters as the metrics page has them.
func (a *adapters) list(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = a.names[id-1]
	}
	return strings.Join(out, ",")
}

// adapter returns the number of the adapter that a model name stands for, 0 for the model itself;
// no name is the model.
func (e *Emulator) adapter(name string) (int32, bool) {
	if name == "" || name == e.cfg.Model {
		return 0, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id, ok := e.adapters.ids[name]
	return id, ok
}

func (e *Emulator) adapterNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]string, 0, len(e.adapters.ids))
	for name := range e.adapters.ids {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// loraBody is what /v1/load_lora_adapter and /v1/unload_lora_adapter read.
type loraBody struct {
	Name    string `json:"lora_name"`
	Path    string `json:"lora_path"`
	InPlace bool   `json:"load_inplace"`
}

func (e *Emulator) loadLoRA(w http.ResponseWriter, r *http.Request) {
	e.editLoRA(w, r, "added", func(b *loraBody) *problem {
		_, known := e.adapters.ids[b.Name]
		switch {
		case b.Name == "" || b.Path == "":
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", "Both 'lora_name' and 'lora_path' must be provided."}
		case b.Name == e.cfg.Model:
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", fmt.Sprintf("The lora adapter '%s' conflicts with a base model name.", b.Name)}
		case len(b.Name) > maxAdapterName || strings.ContainsAny(b.Name, ",\"\\\n"):
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", "The lora adapter's name is too long or has characters that metrics cannot carry."}
		case known && !b.InPlace:
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", fmt.Sprintf("The lora adapter '%s' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.", b.Name)}
		case !known && len(e.adapters.names) >= maxAdapters:
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", "Too many adapters were loaded."}
		}
		e.adapters.add(b.Name)
		return nil
	})
}

func (e *Emulator) unloadLoRA(w http.ResponseWriter, r *http.Request) {
	e.editLoRA(w, r, "removed", func(b *loraBody) *problem {
		if b.Name == "" {
			return &problem{http.StatusBadRequest, "InvalidUserInput", "", "'lora_name' needs to be provided to unload a LoRA adapter."}
		}
		if _, ok := e.adapters.ids[b.Name]; !ok {
			return &problem{http.StatusNotFound, "NotFoundError", "", fmt.Sprintf("The lora adapter '%s' cannot be found.", b.Name)}
		}
		delete(e.adapters.ids, b.Name) // running requests run on
		return nil
	})
}

// editLoRA reads a request, has edit act on it under the lock, and answers.
func (e *Emulator) editLoRA(w http.ResponseWriter, r *http.Request, done string, edit func(*loraBody) *problem) {
	var b loraBody
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	e.mu.Lock()
	p := edit(&b)
	e.mu.Unlock()
	if p != nil {
		refuse(w, p)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "Success: LoRA adapter '%s' %s successfully.", b.Name, done)
}

// loraInfo writes vllm:lora_requests_info: the state now, with its time as the value. e.mu is held.
func (e *Emulator) loraInfo(p *page) {
	slots := e.cfg.Engine.MaxLoRA
	if slots == 0 && len(e.adapters.names) == 0 {
		return // a server without LoRA does not have the family
	}
	e.running, e.waiting = e.eng.Adapters(e.running[:0], e.waiting[:0])
	p.labels = ""
	p.gauges("vllm:lora_requests_info", "Running stats on lora requests.", series{
		`max_lora="` + strconv.Itoa(slots) + `",running_lora_adapters="` + labelEscaper.Replace(e.adapters.list(e.running)) +
			`",waiting_lora_adapters="` + labelEscaper.Replace(e.adapters.list(e.waiting)) + `"`,
		float64(time.Now().UnixNano()) / 1e9,
	})
}
