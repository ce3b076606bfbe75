package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer feeds raw bytes in pieces of n and returns what came of it.
func answer(raw []byte, n int, limit int64) (r response, body string, err error) {
	var sink bytes.Buffer
	r.reset(limit)
	for from := 0; from < len(raw) && err == nil && r.step != complete; from += n {
		err = r.feed(raw[from:min(len(raw), from+n)], &sink)
	}
	if err == nil && r.step != complete {
		err = r.eof()
	}
	return r, sink.String(), err
}

func TestResponse(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nDate: x\r\n"
	for _, c := range []struct {
		name, raw, body string
		status          int
		close           bool
		err             error
	}{
		{"length", head + "Content-Length: 5\r\n\r\nhello", "hello", 200, false, nil},
		{"length, any case", head + "CONTENT-LENGTH:5 \r\n\r\nhello", "hello", 200, false, nil},
		{"empty", head + "Content-Length: 0\r\n\r\n", "", 200, false, nil},
		{"chunked", head + "transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello", 200, false, nil},
		{"chunk extension and trailer", head + "Transfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n", "hello", 200, false, nil},
		{"large hex size", head + "Transfer-Encoding: chunked\r\n\r\n0000A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 200, false, nil},
		{"until close", head + "\r\nhello", "hello", 200, true, nil},
		{"close", head + "Connection: Close\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, nil},
		{"HTTP/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false, nil},
		{"informational", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + head + "Content-Length: 5\r\n\r\nhello", "hello", 200, false, nil},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok", 200, false, nil},
		{"not found", "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", "", 404, false, nil},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "", 204, false, nil},
		{"nothing", "", "", 0, false, io.EOF},
		{"cut in the head", head, "", 0, false, errCut},
		{"cut in the body", head + "Content-Length: 5\r\n\r\nhell", "hell", 200, false, errCut},
		{"cut in a chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "hel", 200, false, errCut},
		{"cut before the last chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", 200, false, errCut},
		{"too long", head + "Content-Length: 101\r\n\r\n", "", 200, false, errTooLarge},
		{"too long by chunks", head + "Transfer-Encoding: chunked\r\n\r\n65\r\n" + strings.Repeat("x", 101) + "\r\n0\r\n\r\n", "", 200, false, errTooLarge},
		{"too long until close", head + "\r\n" + strings.Repeat("x", 101), "", 200, true, errTooLarge},
		{"brotli", head + "Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello", "", 200, false, errEncoding},
		{"two lengths", head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "", 200, false, errHTTP},
		{"length and chunks", head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "", 200, false, errHTTP},
		{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "", 200, true, errHTTP},
		{"bare line feed", "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello", "", 0, false, errHTTP},
		{"signed length", head + "Content-Length: +5\r\n\r\nhello", "", 200, false, errHTTP},
		{"huge length", head + "Content-Length: 99999999999999999999\r\n\r\nhello", "", 200, false, errHTTP},
		{"gzip framing", head + "Transfer-Encoding: gzip, chunked\r\n\r\n", "", 200, false, errHTTP},
		{"folded header", head + " folded\r\nContent-Length: 5\r\n\r\nhello", "", 200, false, errHTTP},
		{"blank before colon", head + "Content-Length : 5\r\n\r\nhello", "", 200, false, errHTTP},
		{"chunk size signed", head + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", "", 200, false, errHTTP},
		{"chunk size negative", head + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", "", 200, false, errHTTP},
		{"chunk size missing", head + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", "", 200, false, errHTTP},
		{"chunk longer than its size", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", "hell", 200, false, errHTTP},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", "", 0, false, errHTTP},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n\r\n", "", 0, false, errHTTP},
		{"bad status", "HTTP/1.1 2x0 OK\r\n\r\n", "", 0, false, errHTTP},
		{"endless hints", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxExtra+1), "", 0, false, errHTTP},
		{"endless head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead), "", 0, false, errHTTP},
	} {
		for _, n := range []int{1, 2, 3, 7, 1 << 20} {
			r, body, err := answer([]byte(c.raw), n, 100)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%s, pieces of %d: error %v, want %v", c.name, n, err, c.err)
				continue
			}
			if c.err == nil && (body != c.body || r.status != c.status || r.close != c.close) {
				t.Errorf("%s, pieces of %d: %d %q close %v, want %d %q %v", c.name, n, r.status, body, r.close, c.status, c.body, c.close)
			}
			if len(body) > 101 || cap(r.held) > 4*maxHead {
				t.Errorf("%s, pieces of %d: held %d, passed on %d", c.name, n, cap(r.held), len(body))
			}
		}
	}
}

// TestResponseRefusesMore: bytes behind an answer nobody asked for end the connection.
func TestResponseRefusesMore(t *testing.T) {
	var r response
	r.reset(100)
	if err := r.feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"), io.Discard); !errors.Is(err, errHTTP) {
		t.Errorf("error %v", err)
	}
}

// FuzzResponse: the result depends on the bytes only, not on how they are cut; whatever we take for
// an answer, net/http takes for the same.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), uint8(3))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n"), uint8(1))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\n\r\nbody"), uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, cut uint8) {
		r, body, err := answer(raw, max(1, len(raw)), 1000)
		if len(body) > 1000 {
			t.Fatalf("%d bytes passed on", len(body))
		}
		r2, body2, err2 := answer(raw, int(cut)+1, 1000)
		if err == nil || err2 == nil {
			// Bytes behind the answer are seen only when they come with it.
			if fmt.Sprint(err) != fmt.Sprint(err2) && !strings.Contains(fmt.Sprint(err, err2), "bytes after") || err == nil && (body != body2 || r.status != r2.status) {
				t.Fatalf("whole: %d %q %v; cut: %d %q %v", r.status, body, err, r2.status, body2, err2)
			}
		}
		if err != nil || r.status != 200 {
			return
		}
		in := bufio.NewReader(bytes.NewReader(raw))
		for {
			ref, rerr := http.ReadResponse(in, nil)
			if rerr != nil {
				return // net/http is stricter about names and values of headers we do not use
			}
			if ref.StatusCode < 200 {
				continue
			}
			b, berr := io.ReadAll(ref.Body)
			if berr == nil && (ref.StatusCode != http.StatusOK || string(b) != body) {
				t.Fatalf("net/http reads %d %q, we read %q", ref.StatusCode, b, body)
			}
			return
		}
	})
}
