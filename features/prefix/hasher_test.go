package prefix

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const message Mark = 1

// chainOf hashes text in one write under a root.
func chainOf(size int, root uint64, text string) []uint64 {
	var h Hasher
	h.Reset(size, root, nil)
	_, _ = h.WriteString(text)
	return h.Chain()
}

// TestB25Identity: what belongs to a prefix key. The chains of one text under different models,
// adapters and salts differ from the first block on, and stay equal to themselves.
func TestB25Identity(t *testing.T) {
	text := strings.Repeat("o, what a prompt. ", 2000/18)
	type identity struct{ model, adapter, salt, lead string }
	ids := []identity{
		{model: "demo"},
		{model: "demo", adapter: "demo-lora-a"},
		{model: "demo", adapter: "demo-lora-b"},
		{model: "demo", salt: "t1"},
		{model: "demo", salt: "t2"},
		{model: "dem", lead: "o"},
		{model: "demot1"},
		{salt: "demo"},
		{},
	}
	seen := map[uint64]identity{}
	for _, id := range ids {
		root := Root(id.model, id.adapter, id.salt)
		c := chainOf(DefaultBlock, root, id.lead+text)
		if again := chainOf(DefaultBlock, Root(id.model, id.adapter, id.salt), id.lead+text); !slices.Equal(c, again) {
			t.Errorf("%+v: not equal to itself", id)
		}
		if other, dup := seen[c[0]]; dup {
			t.Errorf("%+v and %+v have the same first block", id, other)
		}
		seen[c[0]] = id
	}
}

// TestB25AdapterFromEvent: a request names its adapter in place of the model, a KV event names
// both; the key is the same.
func TestB25AdapterFromEvent(t *testing.T) {
	if Root("demo-lora-a", "demo-lora-a", "") != Root("demo", "demo-lora-a", "") {
		t.Error("an adapter's root depends on how it was named")
	}
	if Root("demo", "", "") == Root("demo", "demo-lora-a", "") {
		t.Error("an adapter shares the root of its base model")
	}
}

// TestRootStable pins the hashes: replicas, restarts and recorded traces must agree on them.
func TestRootStable(t *testing.T) {
	if got, want := Root("demo", "", "t1"), uint64(0xc8f5e1a990671e2f); got != want {
		t.Errorf("Root = %#x, want %#x", got, want)
	}
	var h Hasher
	h.Reset(4, 1, nil)
	_, _ = h.WriteString("ab")
	h.Mark(message, 7)
	_, _ = h.WriteString("cdefgh!")
	want := []uint64{0xfe6407cc6ce3f556, 0x3f80943757640247}
	if diff := cmp.Diff(want, h.Chain()); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
}

// TestB25Boundaries: "ab"+"c" and "a"+"bc" as two messages differ, and so do one and two parts.
func TestB25Boundaries(t *testing.T) {
	pad := strings.Repeat("x", 2*DefaultBlock)
	chain := func(texts ...string) []uint64 {
		var h Hasher
		h.Reset(DefaultBlock, 0, nil)
		for _, s := range texts {
			h.Mark(message, 1)
			_, _ = h.WriteString(s)
		}
		return h.Chain()
	}
	all := map[uint64]string{}
	for name, texts := range map[string][]string{
		"ab|c":  {"ab", "c" + pad},
		"a|bc":  {"a", "bc" + pad},
		"abc":   {"abc" + pad},
		"|abc":  {"", "abc" + pad},
		"||abc": {"", "", "abc" + pad},
		"abc|":  {"abc", pad},
	} {
		c := chain(texts...)
		if len(c) != 2 {
			t.Fatalf("%s: %d blocks", name, len(c))
		}
		if other, dup := all[c[0]]; dup {
			t.Errorf("%s and %s have the same first block", name, other)
		}
		all[c[0]] = name
	}
}

// TestMarkAtBorder: a boundary at the end of a full block leaves that block alone.
func TestMarkAtBorder(t *testing.T) {
	var a, b Hasher
	a.Reset(4, 0, nil)
	b.Reset(4, 0, nil)
	_, _ = a.WriteString("abcdefgh")
	_, _ = b.WriteString("abcd")
	b.Mark(message, 0)
	_, _ = b.WriteString("efgh")
	if a.Chain()[0] != b.Chain()[0] || a.Chain()[1] == b.Chain()[1] {
		t.Errorf("%x and %x: want the first block equal, the second not", a.Chain(), b.Chain())
	}
}

// TestB10Unicode: blocks are cut by bytes, inside characters too. A changed last character changes
// the last block alone, and no block size is special.
func TestB10Unicode(t *testing.T) {
	p1 := strings.Repeat("\u6570\u636e", 200)
	p2 := p1[:len(p1)-3] + "\u6571"
	family := strings.Repeat("\U0001F468\u200d\U0001F469\u200d\U0001F467", 100)
	for size := 1; size <= 64; size++ {
		a, b := chainOf(size, 0, p1), chainOf(size, 0, p2)
		if len(a) != len(p1)/size {
			t.Fatalf("size %d: %d blocks", size, len(a))
		}
		if n := (len(p1) - 3) / size; !slices.Equal(a[:n], b[:n]) {
			t.Errorf("size %d: blocks before the change differ", size)
		}
		if got, want := len(chainOf(size, 0, family)), len(family)/size; got != want {
			t.Errorf("size %d: %d blocks of emoji, want %d", size, got, want)
		}
	}
	if a, b := chainOf(64, 0, p1), chainOf(64, 0, p2); len(p1)%64 == 0 && a[len(a)-1] == b[len(b)-1] {
		t.Error("the last block does not notice the last character")
	}
}

// TestTokens: ids are keyed by their values, not by their number or their digits.
func TestTokens(t *testing.T) {
	chain := func(ids ...uint32) []uint64 {
		var h Hasher
		h.Reset(64, 0, nil)
		for _, id := range ids {
			h.WriteToken(id)
		}
		if h.Bytes() != 4*len(ids) {
			t.Errorf("%d bytes for %d ids", h.Bytes(), len(ids))
		}
		return h.Chain()
	}
	x, y := make([]uint32, 64), make([]uint32, 64)
	for i := range x {
		x[i], y[i] = uint32(1+i), uint32(65+i)
	}
	if cx, cy := chain(x...), chain(y...); len(cx) != 4 || cx[0] == cy[0] {
		t.Errorf("chains of different ids of one number: %x, %x", cx, cy)
	}
	a := append([]uint32{12, 34}, x...)
	b := append([]uint32{123, 4}, x...)
	if chain(a...)[0] == chain(b...)[0] {
		t.Error("ids with the same digits have the same key")
	}
}

// TestChainBound: neither a tiny block nor an endless text grows the chain past its bound.
func TestChainBound(t *testing.T) {
	var h Hasher
	h.Reset(1, 0, nil)
	buf := make([]byte, 1<<16)
	for range 3 {
		_, _ = h.Write(buf)
	}
	if len(h.Chain()) != MaxChain || h.Bytes() != 3<<16 {
		t.Errorf("%d blocks of %d bytes, want %d", len(h.Chain()), h.Bytes(), MaxChain)
	}
}

func TestResetSize(t *testing.T) {
	for in, want := range map[int]int{0: DefaultBlock, -5: MinBlock, 1: 1, 64: 64, MaxBlock: MaxBlock, 1 << 20: MaxBlock} {
		var h Hasher
		h.Reset(in, 0, nil)
		if h.Size() != want {
			t.Errorf("Reset(%d): size %d, want %d", in, h.Size(), want)
		}
	}
}

// TestContinuation: the chain of a prompt continued by its answer is that of the next turn, as far
// as it goes, and the copy made for the answer leaves the original alone.
func TestContinuation(t *testing.T) {
	say := func(h *Hasher, role uint64, text string) {
		h.Mark(message, role)
		_, _ = h.WriteString(text)
	}
	question, answer := strings.Repeat("why? ", 150), strings.Repeat("because. ", 150)
	var h Hasher
	h.Reset(DefaultBlock, 3, nil)
	say(&h, 1, question)
	prompt := slices.Clone(h.Chain())
	cont := h
	say(&cont, 2, answer)
	full := slices.Clone(cont.Chain())

	var next Hasher
	next.Reset(DefaultBlock, 3, nil)
	say(&next, 1, question)
	say(&next, 2, answer)
	say(&next, 1, strings.Repeat("and then? ", 100))
	if got := next.Chain()[:len(full)]; !slices.Equal(got, full) || len(full) <= len(prompt) {
		t.Errorf("%d blocks of prompt and answer are not the first of the next turn's %d", len(full), len(next.Chain()))
	}
	if !slices.Equal(h.Chain(), prompt) {
		t.Error("continuing a copy changed the original")
	}
}

// op is one thing said to a Hasher.
type op struct {
	mark Mark // before the text; 0: none
	val  uint64
	text []byte
}

// naive computes a chain from the whole sequence of ops at once: the text in one piece, and the
// boundaries by block.
func naive(size int, root uint64, ops []op) []uint64 {
	var text []byte
	type boundary struct {
		at  int
		m   Mark
		val uint64
	}
	var marks []boundary
	for _, o := range ops {
		if o.mark != 0 {
			marks = append(marks, boundary{len(text), o.mark, o.val})
		}
		text = append(text, o.text...)
	}
	var chain []uint64
	prev := root
	for at := 0; at+size <= len(text); at += size {
		running := uint64(0)
		for _, m := range marks {
			if m.at >= at && m.at < at+size {
				running = sumOf(running, uint64(m.at-at)<<8|uint64(m.m), m.val)
			}
		}
		block := binary.LittleEndian.AppendUint64(nil, prev)
		block = binary.LittleEndian.AppendUint64(block, running)
		prev = xxhash.Sum64(append(block, text[at:at+size]...))
		chain = append(chain, prev)
	}
	return chain
}

func sumOf(words ...uint64) uint64 {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return xxhash.Sum64(b)
}

// TestPartition: however text is cut into writes, the chain is the same, and is the one
// computed from the whole.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		root := rapid.Uint64().Draw(t, "root")
		n := rapid.IntRange(0, 12).Draw(t, "ops")
		var ops []op
		for range n {
			ops = append(ops, op{
				text: rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "text"),
				mark: Mark(rapid.IntRange(0, 2).Draw(t, "mark")),
				val:  rapid.Uint64Range(0, 3).Draw(t, "val"),
			})
		}
		var h Hasher
		h.Reset(size, root, nil)
		for _, o := range ops {
			if o.mark != 0 {
				h.Mark(o.mark, o.val)
			}
			for rest := o.text; len(rest) > 0; {
				k := rapid.IntRange(1, len(rest)).Draw(t, "cut")
				_, _ = h.Write(rest[:k])
				rest = rest[k:]
			}
		}
		if diff := cmp.Diff(naive(size, root, ops), h.Chain()); diff != "" {
			t.Fatalf("chain (-whole +streamed):\n%s", diff)
		}
	})
}

func FuzzHasher(f *testing.F) {
	f.Add([]byte("hello, world: a prompt of some length"), []byte{3, 0, 255, 1}, uint8(8))
	f.Add([]byte("\u6570\u636e\u6570\u636e"), []byte{1, 1, 1}, uint8(4))
	f.Fuzz(func(t *testing.T, text, cuts []byte, size uint8) {
		var one, many Hasher
		one.Reset(int(size), 9, nil)
		_, _ = one.Write(text)
		many.Reset(int(size), 9, nil)
		rest := text
		for _, c := range cuts {
			k := min(int(c), len(rest))
			if c%2 == 0 {
				_, _ = many.Write(rest[:k])
			} else {
				_, _ = many.WriteString(string(rest[:k]))
			}
			rest = rest[k:]
		}
		_, _ = many.Write(rest)
		if !slices.Equal(one.Chain(), many.Chain()) || one.Bytes() != many.Bytes() {
			t.Errorf("chain depends on the partition: %x, %x", one.Chain(), many.Chain())
		}
	})
}

func TestHasherAllocs(t *testing.T) {
	var h Hasher
	text := []byte(strings.Repeat("sixteen letters.", 1<<12))
	h.Reset(DefaultBlock, 0, nil)
	_, _ = h.Write(text)
	if n := testing.AllocsPerRun(20, func() {
		h.Reset(DefaultBlock, 0, h.Chain())
		h.Mark(message, 1)
		_, _ = h.Write(text)
	}); n != 0 {
		t.Errorf("%v allocations for %d blocks", n, len(h.Chain()))
	}
}

func BenchmarkHasher(b *testing.B) {
	text := []byte(strings.Repeat("sixteen letters.", 220<<10/16))
	var h Hasher
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		h.Reset(DefaultBlock, 0, h.Chain())
		for at := 0; at < len(text); at += 60 { // as between escapes
			_, _ = h.Write(text[at:min(at+60, len(text))])
		}
	}
}
