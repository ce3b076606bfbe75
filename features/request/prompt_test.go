package request

import (
	"fmt"
	"strings"
	"testing"
)

// ids writes token ids from..to as a JSON list.
func ids(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, ",%d", i)
	}
	return "[" + b.String()[1:] + "]"
}

// TestB02Prompts: prompt and input as text, list, ids and lists of ids.
func TestB02Prompts(t *testing.T) {
	for _, api := range []struct{ path, field string }{{completionPath, "prompt"}, {embeddingPath, "input"}} {
		body := func(prompt string) string { return `{"model":"demo","` + api.field + `":` + prompt + `}` }
		for prompt, want := range map[string]Request{
			`"hello"`:           {PromptBytes: 5, PromptTokens: 1, Choices: 1},
			`["hello","world"]`: {PromptBytes: 10, PromptTokens: 3, Choices: 2},
			`[1,2,3,4]`:         {PromptBytes: 16, PromptTokens: 4, Choices: 1, ExactTokens: true},
			`[[1,2],[3,4,5]]`:   {PromptBytes: 20, PromptTokens: 5, Choices: 2, ExactTokens: true},
			`[ [ ] , [ 7 ] ]`:   {PromptBytes: 4, PromptTokens: 1, Choices: 2, ExactTokens: true},
			`[]`:                {Choices: 1},
			`null`:              {Choices: 1},
			`""`:                {Choices: 1},
			`[4294967295]`:      {PromptBytes: 4, PromptTokens: 1, Choices: 1, ExactTokens: true},
		} {
			r := must(t, small, api.path, body(prompt))
			got := Request{PromptBytes: r.PromptBytes, PromptTokens: r.PromptTokens, Choices: r.Choices, ExactTokens: r.ExactTokens}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s %s: %+v, want %+v", api.path, prompt, got, want)
			}
		}
		for prompt, param := range map[string]string{
			`[1,-2]`: "[1]", `[1.5]`: "[0]", `["a",1]`: "[1]", `[1,[2]]`: "[1]", `{"a":1}`: "", `7`: "", `true`: "", `false`: "",
			`[1e2]`: "[0]", `[4294967296]`: "[0]", `[99999999999999999999999]`: "[0]", `[18446744073709551617]`: "[0]", `[1,"a"]`: "[1]", `[1,null]`: "[1]",
			`[[1],2]`: "[1]", `[[1],"a"]`: "[1]", `[[1,[2]]]`: "[0][1]", `["a",["b"]]`: "[1]", `[null]`: "[0]", `[{}]`: "[0]", `[-0]`: "[0]",
		} {
			_, err := try(t, small, api.path, body(prompt))
			if err == nil || err.Status != 400 || err.Param != api.field+param {
				t.Errorf("%s %s: %v, want 400 at %s%s", api.path, prompt, err, api.field, param)
			}
		}
	}
	for _, body := range []string{`{"model":"m"}`, `{"model":"m","prompt":null,"prompt_embeds":"aGk="}`} {
		must(t, small, completionPath, body)
	}
}

// TestB02Keys: ids are keyed by value, and the first prompt of a list shares its key with itself
// alone.
func TestB02Keys(t *testing.T) {
	c := Config{BlockSize: 64}
	chain := func(prompt string) []uint64 {
		return must(t, c, completionPath, `{"model":"demo","prompt":`+prompt+`}`).Blocks
	}
	x, y := chain(ids(1, 64)), chain(ids(65, 128))
	if len(x) != 4 || common(x, y) != 0 {
		t.Errorf("different ids, same number: %d of %d blocks in common", common(x, y), len(x))
	}
	if common(chain("[12,34,"+ids(1, 64)[1:]), chain("[123,4,"+ids(1, 64)[1:])) != 0 {
		t.Error("ids with the same digits share a key")
	}
	if common(chain(ids(1, 64)), chain(`"`+long("x", 300)+`"`)) != 0 {
		t.Error("ids and text share a key")
	}
	text := long("text", 640)
	wantSame(t, "a list of one", chain(`"`+text+`"`), chain(`["`+text+`"]`))
	wantSame(t, "a list of one list", chain(ids(1, 64)), chain("["+ids(1, 64)+"]"))
	if n := common(chain(`"`+text+`"`), chain(`["`+text+`","more"]`)); n != 10 {
		t.Errorf("first of a list: %d of 10 blocks in common", n)
	}
	wantOther(t, "cut elsewhere", chain(`["ab","c`+text+`"]`), chain(`["a","bc`+text+`"]`))
	wantOther(t, "ids cut elsewhere", chain(`[[1],[2,`+ids(3, 64)[1:]+`]`), chain(`[[1,2],`+ids(3, 64)+`]`))
	if r := must(t, c, completionPath, `{"model":"demo","prompt":`+ids(1, 64)+`}`); r.BlockTokens() != 16 || r.CachedTokens(4) != 63 {
		t.Errorf("%v tokens per block, %d cached in 4 blocks", r.BlockTokens(), r.CachedTokens(4))
	}
}

// TestB02Embeddings: embeddings may come as a conversation.
func TestB02Embeddings(t *testing.T) {
	r := must(t, small, embeddingPath, `{"model":"m","messages":[{"role":"user","content":"hello, world"}]}`)
	wantSame(t, "conversation", r.Blocks, key(t, chatPath, `{"model":"m","messages":[{"role":"user","content":"hello, world"}]}`))
	r.AddAnswer([]byte(long("no answer", 100)))
	if len(r.Chain()) != len(r.Blocks) {
		t.Error("an embedding has an answer")
	}
}
