package emulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoadAndUnloadAdapters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		for i, c := range []struct {
			path, body string
			status     int
			text       string
		}{
			{"load", `{"lora_name":"sql","lora_path":"/p"}`, 200, "Success: LoRA adapter 'sql' added successfully."},
			{"load", `{"lora_name":"sql","lora_path":"/p"}`, 400, "has already been loaded"},
			{"load", `{"lora_name":"sql","lora_path":"/p","load_inplace":true}`, 200, "added"},
			{"load", `{"lora_name":"sql"}`, 400, "must be provided"},
			{"load", `{"lora_name":"llama-3.1-8b","lora_path":"/p"}`, 400, "conflicts"},
			{"load", `{"lora_name":"a,b","lora_path":"/p"}`, 400, "characters"},
			{"load", `{"lora_name":"` + strings.Repeat("a", 300) + `","lora_path":"/p"}`, 400, "too long"},
			{"load", `[`, 400, "error"},
			{"unload", `{"lora_name":"nobody"}`, 404, "cannot be found"},
			{"unload", `{}`, 400, "needs to be provided"},
			{"unload", `{"lora_name":"sql"}`, 200, "Success: LoRA adapter 'sql' removed successfully."},
			{"unload", `{"lora_name":"sql"}`, 404, "cannot be found"},
		} {
			got := call(t.Context(), e, "POST", "/v1/"+c.path+"_lora_adapter", c.body)
			if got.status != c.status || !strings.Contains(got.String(), c.text) {
				t.Errorf("%d %s %s: %d %s", i, c.path, c.body, got.status, got)
			}
			if i == 0 {
				call(t.Context(), e, "POST", "/v1/completions", `{"model":"sql","prompt":"x"}`).answer(t)
			}
		}
		if got := call(t.Context(), e, "POST", "/v1/completions", `{"model":"sql","prompt":"x"}`); got.status != http.StatusNotFound {
			t.Errorf("an unloaded adapter answers: %d", got.status)
		}
	})
}

// A client cannot make the server remember names without end.
func TestAdaptersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		refused := 0
		for i := range maxAdapters + 10 {
			name := fmt.Sprintf(`{"lora_name":"a%d","lora_path":"/p"}`, i)
			if call(t.Context(), e, "POST", "/v1/load_lora_adapter", name).status != http.StatusOK {
				refused++
			}
			call(t.Context(), e, "POST", "/v1/unload_lora_adapter", name)
		}
		if refused != 10 || len(e.adapters.names) != maxAdapters {
			t.Errorf("%d refused, %d names kept", refused, len(e.adapters.names))
		}
	})
}

// With fewer slots than adapters the page shows who runs and who waits, and when.
func TestAdaptersOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := h100(t)
		cfg.MaxLoRA = 1
		e := start(t, Config{Engine: cfg, Adapters: []string{"sql", "chat"}})
		done := make(chan *capture)
		for _, model := range []string{"sql", "chat", "llama-3.1-8b"} {
			go func() {
				done <- call(t.Context(), e, "POST", "/v1/completions", `{"model":"`+model+`","prompt":"x","max_tokens":3000}`)
			}()
			time.Sleep(time.Second)
		}
		text := call(t.Context(), e, "GET", "/metrics", "").String()
		want := `vllm:lora_requests_info{max_lora="1",running_lora_adapters="sql",waiting_lora_adapters="chat"} `
		i := strings.Index(text, want)
		if i < 0 {
			t.Fatalf("no %s in\n%.0s", want, text)
		}
		if rest := text[i+len(want):]; !strings.HasPrefix(rest, value(float64(time.Now().UnixNano())/1e9)) {
			t.Errorf("its value is not the time: %.40s", rest)
		}
		for range 3 {
			(<-done).answer(t)
		}
		if loads := e.Stats().AdapterLoads; loads != 2 {
			t.Errorf("%d loads into the slot", loads)
		}
	})
}
