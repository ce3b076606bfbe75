package answer

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPartition: whatever the bytes, and however they are cut, the reader says the same, and keeps
// within its bounds.
func FuzzPartition(f *testing.F) {
	for i, a := range answers {
		f.Add(a.body, uint16(i), uint16(7*i), a.form == Events)
	}
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"\\\\\\\"\"}}]}\r\r\n\ndata:[DONE]"), uint16(3), uint16(40), true)
	f.Fuzz(func(t *testing.T, body []byte, a, b uint16, events bool) {
		form := Document
		if events {
			form = Events
		}
		cuts := []int{int(a) % (len(body) + 1), int(b) % (len(body) + 1)}
		want := readAll(form, body).said()
		if d := cmp.Diff(want, readAll(form, partition(body, cuts)...).said()); d != "" {
			t.Fatal(d)
		}
		var r Reader
		r.Reset(form, nil)
		tokens := 0
		for i := range body {
			tokens += r.Write(body[i : i+1])
		}
		if tokens += r.Close(); tokens != want.Tokens || r.Usage() != want.Usage {
			t.Fatalf("byte by byte: %d tokens, %+v", tokens, r.Usage())
		}
	})
}

// FuzzCursor: on valid JSON the walk agrees with encoding/json about the members of an object.
func FuzzCursor(f *testing.F) {
	for _, a := range answers {
		f.Add(a.body)
	}
	f.Add([]byte(`{"a" : [1,{"b":"]}\\"},[]], "c":"\\\"", "d":-1.5e3,"e":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := cursor{b: body}
		got := map[string]string{}
		if c.enter('{') {
			for c.member() {
				key := string(c.key)
				c.peek()
				start := c.i
				c.skip()
				got[key] = string(body[start:c.i])
			}
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return
		}
		if c.bad {
			t.Fatalf("%q: taken for broken", body)
		}
		for key, v := range got {
			var name string
			if json.Unmarshal([]byte(`"`+key+`"`), &name) != nil {
				t.Fatalf("key %q is no string", key)
			}
			if string(want[name]) != v {
				t.Fatalf("%q: member %q is %q, want %q", body, name, v, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Fatalf("%q: members %v not seen", body, want)
		}
	})
}
