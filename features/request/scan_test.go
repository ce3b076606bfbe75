package request

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// checkAll checks a whole document.
func checkAll(b []byte) fault {
	i, f := checkValue(b, skipSpace(b, 0))
	if f == noFault && skipSpace(b, i) < len(b) {
		return badSyntax
	}
	return f
}

func TestCheckValue(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat("}]", n/2) }
	for in, want := range map[string]fault{
		`{"a":[1,-0.5e+7,true,false,null,"x"],"b":{}}`: noFault,
		" [ ] ":                       noFault,
		`"\ud83d"`:                    noFault,
		"\"\xe6\x95\xb0, and more\"":  noFault,
		deep(maxDepth):                noFault,
		deep(maxDepth + 2):            tooDeep,
		deep(600):                     tooDeep,
		``:                            cutOff,
		`{`:                           cutOff,
		`{"a"`:                        cutOff,
		`{"a":`:                       cutOff,
		`{"a":1`:                      cutOff,
		`{"a":1,`:                     cutOff,
		`[1`:                          cutOff,
		`[1,`:                         cutOff,
		`"abc`:                        cutOff,
		`"a\`:                         cutOff,
		`"a\u00`:                      cutOff,
		`tru`:                         cutOff,
		`-`:                           cutOff,
		`1.`:                          cutOff,
		`1e`:                          cutOff,
		`[1,]`:                        badSyntax,
		`{"a":1,}`:                    badSyntax,
		`{a:1}`:                       badSyntax,
		`{"a" 1}`:                     badSyntax,
		`[1}`:                         badSyntax,
		`{"a":1]`:                     badSyntax,
		`01`:                          badSyntax,
		`+1`:                          badSyntax,
		`.5`:                          badSyntax,
		`NaN`:                         badSyntax,
		`nul!`:                        badSyntax,
		"\"a\nb\"":                    badSyntax,
		`"\x41"`:                      badSyntax,
		`"\u00g0"`:                    badSyntax,
		"\"\xff, and some more\"":     badUTF8,
		"\"ascii first \xed\xa0\x80":  cutOff,
		"\"ascii \xed\xa0\x80 more\"": badUTF8,
		`[1] 2`:                       badSyntax,
	} {
		if got := checkAll([]byte(in)); got != want {
			t.Errorf("%.40q: fault %d, want %d", in, got, want)
		}
	}
}

// valid is what another implementation says of a document: package jsontext, with names repeated as
// they like and half surrogates in escapes, but UTF-8 otherwise.
func valid(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) && utf8.Valid(b)
}

// depthOf is how deep brackets nest, strings aside.
func depthOf(b []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !inString && (c == '}' || c == ']'):
			depth--
		}
	}
	return deepest
}

var scanSeeds = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi \"there\"\n"}]}`,
	`{"a":[1,2.50,-0,1e400],"b":"\u003cb\u003e \/ \u00e9","a":null}`,
	`"\ud83d\ude00 \ud83d \ude00\ud83d"`, "\"\xe6\x95\xb0\xe6\x8d\xae and more than eight bytes\"",
	` [ {} , [ ] , "" ] `, `[[[[[[[[]]]]]]]]`, `{"a":}`, "\"\x00\"", `"abcdefg\"hijklmnop\\"`,
}

// FuzzScan holds the scanner to package jsontext: it accepts the same documents, walks them without
// fault, decodes the same text, and writes the same one form.
func FuzzScan(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := checkAll(b)
		if got == tooDeep {
			if depthOf(b) <= maxDepth {
				t.Fatalf("%q is not too deep", b)
			}
			return
		}
		if want := valid(b); (got == noFault) != want {
			t.Fatalf("%q: fault %d, but valid %v", b, got, want)
		}
		if got != noFault {
			return
		}
		v := bytes.Trim(b, " \n\r\t")
		if end := valueEnd(v, 0); end != len(v) {
			t.Fatalf("%q ends at %d", v, end)
		}
		if !jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true)) {
			return // half surrogates, which others decode to U+FFFD
		}
		k := (&Request{}).memory()
		want := jsontext.Value(bytes.Clone(v))
		if err := want.Format(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(false)); err != nil {
			t.Fatal(err)
		}
		var canon bytes.Buffer
		k.canon(&canon, v)
		if canon.String() != string(want) {
			t.Fatalf("%q: one form %q, want %q", v, canon.Bytes(), want)
		}
		if v[0] == '"' {
			text, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			var decoded bytes.Buffer
			if end := k.text(&decoded, v, 0); end != len(v) || decoded.String() != string(text) {
				t.Fatalf("%q: text %q up to %d, want %q", v, decoded.Bytes(), end, text)
			}
			if s := appendText(nil, v[1:len(v)-1]); string(s) != string(text) {
				t.Fatalf("%q: text %q, want %q", v, s, text)
			}
		}
	})
}

// TestTextAtAnyCut decodes texts whose escapes fall on every offset of the buffer and of the words
// that are read at once.
func TestTextAtAnyCut(t *testing.T) {
	var got bytes.Buffer
	k := (&Request{}).memory()
	var cuts []int
	for i := range 40 {
		cuts = append(cuts, i, bufSize-i, 2*bufSize-i)
	}
	for _, escape := range []string{`\n`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "\u6570"} {
		for _, before := range cuts {
			for after := range 18 {
				s := `"` + strings.Repeat("x", before) + escape + strings.Repeat("y", after) + `"`
				if _, f := checkString([]byte(s), 0); f != noFault {
					t.Fatalf("%s: fault %d", s, f)
				}
				got.Reset()
				end := k.text(&got, []byte(s), 0)
				if want := appendText(nil, []byte(s[1:len(s)-1])); end != len(s) || got.String() != string(want) {
					t.Fatalf("%d before, %d after %s: ends at %d of %d", before, after, escape, end, len(s))
				}
			}
		}
	}
}

// TestHalfSurrogates: they decode to bytes that nothing else decodes to.
func TestHalfSurrogates(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{`\ud83d`, `\ude00`, `\ud83d\ude00`, `\ude00\ud83d`, `\ufffd`, `\ud83dx`} {
		got := string(appendText(nil, []byte(s)))
		if other, dup := seen[got]; dup {
			t.Errorf("%s and %s are the same text", s, other)
		}
		seen[got] = s
	}
	if got := fmt.Sprintf("%x", appendText(nil, []byte(`\ud83d`))); got != "eda0bd" {
		t.Errorf("half a surrogate is %s", got)
	}
}

// TestCanon: values have one form, whatever the white space and the escapes.
func TestCanon(t *testing.T) {
	k := (&Request{}).memory()
	for in, want := range map[string]string{
		` { "a" : [ 1.50 , -0 , 1E5 ] , "b" : { } } `:            `{"a":[1.50,-0,1E5],"b":{}}`,
		`"\u0062\/\b\f\n\r\t\u0001\"\\\u000a\u00E9\ud83d\uDE00"`: `"b/\b\f\n\r\t\u0001\"\\\n` + "\u00e9\U0001F600" + `"`,
		`["\uD83D","\udE00x"]`:                                   `["\ud83d","\ude00x"]`,
		`[ " a  b " ]`:                                           `[" a  b "]`,
		`true`:                                                   `true`,
	} {
		var got bytes.Buffer
		k.canon(&got, []byte(in))
		if got.String() != want {
			t.Errorf("%s: %s, want %s", in, got.String(), want)
		}
	}
	for in, want := range map[string]string{
		`{"x":1,"a":2,"x":[3]}`: `{"a":2}`, `{"\u0078":1,"b\u0062":" "}`: `{"bb":" "}`, `{"x":1}`: `{}`, `{ }`: `{}`,
	} {
		var got bytes.Buffer
		k.canonObject(&got, []byte(in), "x")
		if got.String() != want {
			t.Errorf("%s without x: %s, want %s", in, got.String(), want)
		}
	}
}
