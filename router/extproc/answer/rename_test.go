package answer

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func renameAll(form Form, chunks ...[]byte) []byte {
	var r Renamer
	r.Reset(form, "demo-base", `al"ias`)
	var out []byte
	for i, c := range chunks {
		own := bytes.Clone(c)
		out = r.Append(out, own, i == len(chunks)-1)
		for j := range own {
			own[j] = 'x'
		}
	}
	return out
}

var renames = []struct {
	name     string
	form     Form
	in, want string
}{
	{"document", Document, `{"id":"1","model":"demo-base","choices":[{"message":{"content":"I am demo-base, \"model\":\"demo-base\""}}]}`,
		`{"id":"1","model":"al\"ias","choices":[{"message":{"content":"I am demo-base, \"model\":\"demo-base\""}}]}`},
	{"nested model stays", Document, `{"choices":[{"model":"demo-base"}],"model":"demo-base"}`, `{"choices":[{"model":"demo-base"}],"model":"al\"ias"}`},
	{"another model", Document, `{"model":"other"}`, `{"model":"other"}`},
	{"no model", Document, `{"choices":[]}`, `{"choices":[]}`},
	{"no JSON", Document, `hello "model":"demo-base"`, `hello "model":"demo-base"`},
	{"empty", Document, ``, ``},
	{"not read", Opaque, `{"model":"demo-base"}`, `{"model":"demo-base"}`},
	{"events", Events, "data: {\"model\":\"demo-base\",\"choices\":[{\"delta\":{\"content\":\"demo-base\"}}]}\n\n: demo-base\ndata:{\"choices\":[],\"model\":\"demo-base\"}\r\n\r\ndata: [DONE]\n\n",
		"data: {\"model\":\"al\\\"ias\",\"choices\":[{\"delta\":{\"content\":\"demo-base\"}}]}\n\n: demo-base\ndata:{\"choices\":[],\"model\":\"al\\\"ias\"}\r\n\r\ndata: [DONE]\n\n"},
	{"messages", Events, "event: message_start\rdata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"demo-base\"}}\r\r", "event: message_start\rdata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"al\\\"ias\"}}\r\r"},
	{"no last newline", Events, `data: {"model":"demo-base"}`, `data: {"model":"al\"ias"}`},
}

// TestB04NameInAnswers: the client's name is put back where the engine names the model, in any cut,
// and no other byte changes.
func TestB04NameInAnswers(t *testing.T) {
	for _, c := range renames {
		if got := string(renameAll(c.form, []byte(c.in))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(renames).Draw(t, "answer")
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(c.in)), 0, 10).Draw(t, "cuts")
		if got := string(renameAll(c.form, append(partition([]byte(c.in), cuts), nil)...)); got != c.want {
			t.Fatalf("%s: %s, want %s", c.name, got, c.want)
		}
	})
}

// TestB04HeldBytesAreBounded: what shows no name is not held back for ever.
func TestB04HeldBytesAreBounded(t *testing.T) {
	long := strings.Repeat("y", 3*maxHeld)
	for _, c := range []struct {
		form Form
		in   string
	}{
		{Document, `{"text":"` + long + `","model":"demo-base"}`},
		{Events, "data: {\"text\":\"" + long + "\",\"model\":\"demo-base\"}\n\n"},
	} {
		var r Renamer
		r.Reset(c.form, "demo-base", "alias")
		var out []byte
		for i := 0; i < len(c.in); i += 1000 {
			out = r.Append(out, []byte(c.in[i:min(i+1000, len(c.in))]), i+1000 >= len(c.in))
			if held := i + 1000 - len(out); held > maxHeld+1000 {
				t.Fatalf("%d bytes held back", held)
			}
		}
		if string(out) != c.in {
			t.Error("bytes changed")
		}
	}
	// after such a line, the next one is read again
	in := "data: " + long + "\n\ndata: {\"model\":\"demo-base\"}\n\n"
	want := strings.Replace(in, `"demo-base"`, `"al\"ias"`, 1)
	if got := renameAll(Events, []byte(in[:2*maxHeld]), []byte(in[2*maxHeld:])); string(got) != want {
		t.Error("the line after a long one is not renamed")
	}
}

func FuzzRename(f *testing.F) {
	for i, c := range renames {
		f.Add([]byte(c.in), uint16(3*i), uint16(11*i), c.form == Events)
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16, events bool) {
		form := Document
		if events {
			form = Events
		}
		cuts := []int{int(a) % (len(in) + 1), int(b) % (len(in) + 1)}
		whole := renameAll(form, in, nil)
		if cut := renameAll(form, append(partition(in, cuts), nil)...); !bytes.Equal(whole, cut) && len(in) < maxHeld {
			t.Fatalf("%q cut at %v: %q, want %q", in, cuts, cut, whole)
		}
		back := bytes.ReplaceAll(whole, []byte(`"al\"ias"`), []byte(`"demo-base"`))
		if !bytes.Equal(back, bytes.ReplaceAll(in, []byte(`"al\"ias"`), []byte(`"demo-base"`))) {
			t.Fatalf("%q became %q", in, whole)
		}
	})
}
