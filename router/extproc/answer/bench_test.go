package answer

import (
	"os"
	"testing"
)

type discard struct{}

func (discard) AddQuoted([]byte) {}
func (discard) EndAnswer()       {}

// BenchmarkChunk is one event of a real stream of vLLM per chunk.
func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-81ecb2ace390374c","object":"chat.completion.chunk","created":1795957735,"model":"tiny","choices":[{"index":0,"delta":{"content":" presubmit"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n")
	var r Reader
	r.Reset(Events, discard{})
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if r.Write(chunk) != 1 {
			b.Fatal("no token")
		}
	}
}

// BenchmarkStream is a whole short stream, cut at odd places.
func BenchmarkStream(b *testing.B) {
	all, err := os.ReadFile("testdata/vllm_0_32_chat_stream.sse")
	if err != nil {
		b.Fatal(err)
	}
	var r Reader
	b.SetBytes(int64(len(all)))
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(Events, discard{})
		for at := 0; at < len(all); at += 100 {
			r.Write(all[at:min(at+100, len(all))])
		}
		r.Close()
		if r.Usage().Output != 5 {
			b.Fatal(r.Usage())
		}
	}
}

// TestChunksAreReadWithoutAllocation holds the hot path to its promise.
func TestChunksAreReadWithoutAllocation(t *testing.T) {
	all, err := os.ReadFile("testdata/vllm_0_32_chat_stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	read := func() {
		r.Reset(Events, discard{})
		for at := 0; at < len(all); at += 50 {
			r.Write(all[at:min(at+50, len(all))])
		}
		r.Close()
	}
	read() // buffers grow once
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations per stream", n)
	}
}
