package scrape

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/presage-router/presage/features/fleet"
)

// adapters is the newest adapter state of a page. The engine writes a series per state it was ever
// in, with the time of the state as value, and old ones stay on the page: neither the first nor the
// last line counts, but the newest. Of two of the same time the one with the greater lists counts,
// so that the order of lines never matters. A page is judged by itself: after an engine's restart
// its newest time may lie before that of an earlier page.
type adapters struct {
	seen    bool
	at      float64
	max     int32
	running []byte
	waiting []byte
}

func (a *adapters) reset() {
	a.seen, a.at, a.max = false, 0, 0
	a.running, a.waiting = a.running[:0], a.waiting[:0]
}

// offer takes a state if it is newer than what is held; false refuses a time that is none.
func (a *adapters) offer(x *series) bool {
	at := x.value
	if math.IsNaN(at) || math.IsInf(at, 0) || at < 0 {
		return false
	}
	if a.seen {
		order := bytes.Compare(x.running, a.running)
		if order == 0 {
			order = bytes.Compare(x.waiting, a.waiting)
		}
		if at < a.at || at == a.at && order <= 0 {
			return true
		}
	}
	a.seen, a.at, a.max = true, at, 0
	a.running = append(a.running[:0], x.running...)
	a.waiting = append(a.waiting[:0], x.waiting...)
	if n, err := strconv.ParseUint(string(x.maxLoRA), 10, 20); err == nil {
		a.max = int32(n)
	}
	return true
}

// Bounds of adapter lists; a list beyond them is refused.
const (
	maxAdapters    = 1024
	maxAdapterName = 256
)

// list reads a comma-separated list, reusing old where it says the same. An empty list is no
// adapter, not one without a name; a name given twice counts once.
func list(b []byte, old []string) (names []string, ok bool) {
	same, n := true, 0
	for rest := b; len(rest) > 0; {
		var name []byte
		if name, rest = cutName(rest); len(name) == 0 {
			continue
		}
		if len(name) > maxAdapterName || !utf8.Valid(name) || bytes.ContainsFunc(name, isControl) {
			return nil, false
		}
		same = same && n < len(old) && string(name) == old[n]
		n++
	}
	if n > maxAdapters {
		return nil, false
	}
	if same && n == len(old) {
		return old, true
	}
	seen := make(map[string]struct{}, n)
	for rest := b; len(rest) > 0; {
		var name []byte
		name, rest = cutName(rest)
		if _, dup := seen[string(name)]; dup || len(name) == 0 {
			continue
		}
		s := string(name)
		seen[s] = struct{}{}
		names = append(names, s)
	}
	return names, true
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func cutName(b []byte) (name, rest []byte) {
	if i := bytes.IndexByte(b, ','); i >= 0 {
		return bytes.TrimSpace(b[:i]), b[i+1:]
	}
	return bytes.TrimSpace(b), nil
}

// load fills the adapter fields; old is an earlier load whose lists may be reused.
func (a *adapters) load(dst, old *fleet.Load) (ok bool) {
	var okR, okW bool
	dst.RunningLoRA, okR = list(a.running, old.RunningLoRA)
	dst.WaitingLoRA, okW = list(a.waiting, old.WaitingLoRA)
	if !okR || !okW {
		dst.RunningLoRA, dst.WaitingLoRA = nil, nil
		return false
	}
	dst.MaxLoRA = a.max
	dst.Known |= fleet.KnowLoRA
	return true
}
