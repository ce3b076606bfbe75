package emulator

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/presage-router/presage/lab/engine"
	"github.com/tinylib/msgp/msgp"
)

// The bytes are those of vLLM 0.32 (maps) and of older versions (arrays).
func TestBatchBytes(t *testing.T) {
	golden := map[bool]string{
		false: "93cb3ff80000000000009389a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573917bb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964739401020304aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f6964780084a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573917ba66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400",
		true:  "93cb3ff80000000000009398ab426c6f636b53746f726564917bc0940102030404c0a3475055c093ac426c6f636b52656d6f766564917ba347505591b0416c6c426c6f636b73436c656172656400",
	}
	for array, want := range golden {
		b := appendHead(nil, 1.5, 3)
		b = appendEvent(b, &engine.KVEvent{Kind: engine.Stored, Hashes: []uint64{123}}, &block{tokens: []uint32{1, 2, 3, 4}, size: 4}, array)
		b = appendEvent(b, &engine.KVEvent{Kind: engine.Removed, Hashes: []uint64{123}}, nil, array)
		b = appendEvent(b, &engine.KVEvent{Kind: engine.Cleared}, nil, array)
		if got := hex.EncodeToString(appendRank(b, 0)); got != want {
			t.Errorf("array %v:\ngot  %s\nwant %s", array, got, want)
		}
	}
}

// TestBatchBytesAreTheRecorded compares with the recording itself.
func TestBatchBytesAreTheRecorded(t *testing.T) {
	data, err := os.ReadFile(shared(t, "fixtures/valid/kv_event_vectors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for array, prefix := range map[bool]string{false: "MAP (0.32)", true: "ARRAY (older)"} {
		b := appendHead(nil, 1.5, 3)
		b = appendEvent(b, &engine.KVEvent{Kind: engine.Stored, Hashes: []uint64{123}}, &block{tokens: []uint32{1, 2, 3, 4}, size: 4}, array)
		b = appendEvent(b, &engine.KVEvent{Kind: engine.Removed, Hashes: []uint64{123}}, nil, array)
		b = appendRank(appendEvent(b, &engine.KVEvent{Kind: engine.Cleared}, nil, array), 0)
		if !slices.ContainsFunc(strings.Split(string(data), "\n"), func(l string) bool {
			return strings.HasPrefix(l, prefix) && strings.HasSuffix(l, hex.EncodeToString(b))
		}) {
			t.Errorf("%s: the recording has other bytes", prefix)
		}
	}
}

// mirror is an index that follows the events of one engine.
type mirror struct {
	blocks map[uint64][]uint32 // tokens by hash
	parent map[uint64]uint64
}

// apply reads the map encoding.
func (m *mirror) apply(t *testing.T, payload []byte) {
	t.Helper()
	var doc bytes.Buffer
	if _, err := msgp.UnmarshalAsJSON(&doc, payload); err != nil {
		t.Fatalf("%v: %x", err, payload)
	}
	var batch []any
	if err := json.Unmarshal(doc.Bytes(), &batch); err != nil || len(batch) != 3 {
		t.Fatalf("%v: %s", err, doc.Bytes())
	}
	// Through JSON numbers lose bits; hashes are read from the packed form.
	_, rest, err := msgp.ReadArrayHeaderBytes(payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, err = msgp.ReadFloat64Bytes(rest); err != nil {
		t.Fatal(err)
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(rest)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		var ev map[string]any
		if ev, rest, err = msgp.ReadMapStrIntfBytes(rest, nil); err != nil {
			t.Fatal(err)
		}
		m.event(t, ev)
	}
}

func number(t *testing.T, v any) uint64 {
	t.Helper()
	switch v := v.(type) {
	case uint64:
		return v
	case int64:
		return uint64(v)
	}
	t.Fatalf("not a number: %T", v)
	return 0
}

func (m *mirror) event(t *testing.T, ev map[string]any) {
	t.Helper()
	if ev["type"] == "AllBlocksCleared" {
		clear(m.blocks)
		return
	}
	hashes := ev["block_hashes"].([]any)
	if ev["type"] == "BlockRemoved" {
		for _, h := range hashes {
			if _, ok := m.blocks[number(t, h)]; !ok {
				t.Fatalf("block %v removed, but not there", h)
			}
			delete(m.blocks, number(t, h))
		}
		return
	}
	tokens := ev["token_ids"].([]any)
	size := int(number(t, ev["block_size"]))
	if len(tokens) != size*len(hashes) {
		t.Fatalf("%d tokens for %d blocks of %d", len(tokens), len(hashes), size)
	}
	parent := uint64(0)
	if ev["parent_block_hash"] != nil {
		parent = number(t, ev["parent_block_hash"])
	}
	for i, h := range hashes {
		var ids []uint32
		for _, v := range tokens[i*size : (i+1)*size] {
			ids = append(ids, uint32(number(t, v)))
		}
		m.blocks[number(t, h)], m.parent[number(t, h)] = ids, parent
		parent = number(t, h)
	}
}

// cached is how many tokens of a prompt the mirror would find.
func (m *mirror) cached(tokens []uint32, size int) int {
	n := 0
	parent := uint64(0)
	for (n+1)*size <= len(tokens) {
		found := false
		for h, ids := range m.blocks {
			if m.parent[h] == parent && slices.Equal(ids, tokens[n*size:(n+1)*size]) {
				parent, found = h, true
				break
			}
		}
		if !found {
			break
		}
		n++
	}
	return min(n*size, (len(tokens)-1)/size*size)
}

// An index that follows the events holds what the engine holds: it foretells each request's cached
// tokens, through evictions.
func TestEventsMirrorTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := h100(t)
		cfg.Blocks = 201
		e := start(t, Config{Engine: cfg, Events: &Events{Topic: "kv@a@b"}})
		m := &mirror{blocks: map[uint64][]uint32{}, parent: map[uint64]uint64{}}
		seen := uint64(0)
		hits := 0
		for i := range 60 {
			group := (i*i + i/7) % 9
			prompt := strings.Repeat(fmt.Sprintf("group %02d text ", group), 60) + strings.Repeat(fmt.Sprint(i), 40)
			first, batches := e.feed.from(seen)
			if first != seen {
				t.Fatalf("batches from %d on, wanted from %d", first, seen)
			}
			for _, b := range batches {
				m.apply(t, b)
			}
			seen += uint64(len(batches))
			want := m.cached(appendText(nil, prompt), 16)
			got := call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":20}`, prompt)).answer(t).Usage.Details.Cached
			if got != want {
				t.Fatalf("request %d: %d tokens cached, the events say %d", i, got, want)
			}
			hits += got
		}
		if s := e.Stats(); hits == 0 || s.Evictions == 0 {
			t.Errorf("%d tokens hit, %d blocks evicted: too little happened", hits, s.Evictions)
		}
	})
}

// Cancelled requests' blocks are told of with their own tokens, though their slot is taken again.
func TestEventsOfCancelledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Events: &Events{}})
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan *capture)
			go func() {
				done <- call(ctx, e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":500,"stream":true}`, strings.Repeat(fmt.Sprintf("%04d", i), 3000)))
			}()
			call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":2}`)
			cancel()
			<-done
		}
		call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":2}`)
		m := &mirror{blocks: map[uint64][]uint32{}, parent: map[uint64]uint64{}}
		_, batches := e.feed.from(0)
		for _, b := range batches {
			m.apply(t, b)
		}
		found := 0
		for i := range 20 {
			found += m.cached(appendText(nil, strings.Repeat(fmt.Sprintf("%04d", i), 3000)), 16)
		}
		if found == 0 {
			t.Error("no block of a cancelled request was told of")
		}
	})
}

func TestReplayKeepsTheLast(t *testing.T) {
	f := newFeed(&Events{Topic: "t"})
	for i := range feedKeep + 5 {
		f.publish(binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	var got []uint64
	err := f.replay([][]byte{binary.BigEndian.AppendUint64(nil, feedKeep)}, func(m ...[]byte) error {
		got = append(got, binary.BigEndian.Uint64(m[1]))
		if len(m[2]) > 0 && binary.BigEndian.Uint64(m[2]) != got[len(got)-1] {
			t.Errorf("batch %d has the payload of another", got[len(got)-1])
		}
		return nil
	})
	if want := []uint64{feedKeep, feedKeep + 1, feedKeep + 2, feedKeep + 3, feedKeep + 4, 1<<64 - 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if first, batches := f.from(0); first != 5 || len(batches) != feedKeep {
		t.Errorf("from 0: %d batches from %d on", len(batches), first)
	}
	if _, batches := f.from(1 << 60); len(batches) != 0 {
		t.Errorf("from the future: %d batches", len(batches))
	}
	for _, bad := range [][][]byte{{}, {{1, 2, 3}}, {{}, {}}} {
		if f.replay(bad, nil) == nil {
			t.Errorf("request %v was answered", bad)
		}
	}
}

// libzmq's own sockets receive what is published, and get it again when they ask.
func TestEventsReachPyZMQ(t *testing.T) {
	python := os.Getenv("PRESAGE_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import zmq, msgspec").Run(); err != nil {
		t.Skipf("no pyzmq and msgspec: install them, or set PRESAGE_PYTHON: %v", err)
	}
	for _, array := range []bool{false, true} {
		t.Run(fmt.Sprint("array ", array), func(t *testing.T) {
			e := start(t, Config{Events: &Events{Topic: "kv@1@m", Array: array}, Speed: 100})
			var l [2]net.Listener
			for i := range l {
				var err error
				if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- e.ServeEvents(ctx, l[0], l[1]) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			const batches = 3
			cmd := exec.CommandContext(ctx, python, "testdata/subscriber.py", "tcp://"+l[0].Addr().String(), "tcp://"+l[1].Addr().String(), "kv@1@m", fmt.Sprint(batches))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			finished := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(out)
				finished <- b
			}()
			var printed []byte
			for i := 0; printed == nil; i++ { // until the subscriber has had enough
				call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":2}`, strings.Repeat(fmt.Sprintf("%04d", i), 64)))
				select {
				case printed = <-finished:
				default:
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var got struct {
				Live, Old [][]any
			}
			if err := json.Unmarshal(printed, &got, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatalf("%v: %s", err, printed)
			}
			if len(got.Live) != batches || len(got.Old) < batches {
				t.Fatalf("%d live, %d replayed", len(got.Live), len(got.Old))
			}
			first := int(got.Live[0][0].(float64))
			if d := cmp.Diff(got.Live, got.Old[first:first+batches]); d != "" {
				t.Errorf("live and replayed batches differ:\n%s", d)
			}
			event := got.Old[0][1].([]any)[1].([]any)[0]
			if _, isMap := event.(map[string]any); isMap == array {
				t.Errorf("event %v", event)
			}
		})
	}
}
