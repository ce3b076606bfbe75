package request

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// parser returns a Parser, or fails.
func parser(tb testing.TB, c Config) *Parser {
	tb.Helper()
	p, err := NewParser(c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// head is the headers of a JSON post to a path, and further pairs of name and value.
func head(path string, more ...string) *Head {
	h := &Head{}
	h.Set(":method", []byte("POST"))
	h.Set(":path", []byte(path))
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], []byte(more[i+1]))
	}
	h.Set("content-type", []byte("application/json"))
	return h
}

// The paths of the APIs.
const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
	responsesPath  = "/v1/responses"
	embeddingPath  = "/v1/embeddings"
	messagesPath   = "/v1/messages"
)

// try parses one body of a path with the given configuration. It fails the test where the body was
// changed or an error is not an *Error of a client's fault.
func try(tb testing.TB, c Config, path, body string) (*Request, *Error) {
	tb.Helper()
	in := []byte(body)
	var r Request
	err := parser(tb, c).Parse(&r, head(path), in)
	if string(in) != body {
		tb.Fatalf("%s: the body was changed", path)
	}
	if err == nil {
		return &r, nil
	}
	var e *Error
	if !errors.As(err, &e) || e.Status < 400 || e.Status > 499 {
		tb.Fatalf("%s: error %#v is no refusal", path, err)
	}
	return &r, e
}

// must parses a body that is fine.
func must(tb testing.TB, c Config, path, body string) *Request {
	tb.Helper()
	r, err := try(tb, c, path, body)
	if err != nil {
		tb.Fatalf("%s %.200s: %v", path, body, err)
	}
	return r
}

// small is a configuration with blocks so small that short texts have some.
var small = Config{BlockSize: 4}

// key is the chain of a body in small blocks.
func key(tb testing.TB, path, body string) []uint64 {
	tb.Helper()
	return must(tb, small, path, body).Blocks
}

// sameKey and otherKey compare whole chains; common is how many blocks two chains share.
func common(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func wantSame(t *testing.T, what string, a, b []uint64) {
	t.Helper()
	if !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%s: keys differ after %d of %d and %d blocks", what, common(a, b), len(a), len(b))
	}
}

func wantOther(t *testing.T, what string, a, b []uint64) {
	t.Helper()
	if slices.Equal(a, b) || len(a) == 0 || len(b) == 0 {
		t.Errorf("%s: same key of %d blocks", what, len(a))
	}
}

// long is a text of n bytes that does not repeat itself soon.
func long(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(seed)
		b.WriteByte(byte('a' + i%26))
		b.WriteByte(byte('a' + i/26%26))
		b.WriteByte(' ')
	}
	return b.String()[:n]
}
