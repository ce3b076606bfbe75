package outlier

import (
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// TestSilence: a streamed request that waits for 5 s while nothing comes, or patient clients that
// leave one after the other; a token of anybody means that the engine lives.
func TestSilence(t *testing.T) {
	f := newField(4)
	f.send(0, true)
	for range 30 {
		f.pass(time.Second)
		f.snap.States[0].LastToken = f.now
		f.screen(true)
	}
	if f.state(0) != Working {
		t.Fatalf("while others got tokens: %+v", f.Report(nil)[0])
	}
	f.pass(leastSilence - time.Millisecond)
	if f.screen(true); f.state(0) != Working {
		t.Fatalf("early: %+v", f.Report(nil)[0])
	}
	f.pass(time.Millisecond)
	if f.screen(true); f.state(0) != Ejected || f.Report(nil)[0].Cause != Silent {
		t.Errorf("%+v", f.Report(nil)[0])
	}

	f = newField(4)
	for range 3 {
		to, s := f.send(0, true)
		f.pass(2 * time.Second)
		f.Finish(f.now, f.ref(to), &s, &End{Cause: fleet.ClientGone})
		f.pass(time.Minute) // while nobody waits
	}
	f.send(0, true)
	f.screen(true)
	if f.state(0) != Ejected {
		t.Errorf("three clients waited for 2 s each: %+v", f.Report(nil)[0])
	}
}

// TestLargePromptsTakeTime: the silence allowed grows with the largest prompt that waits.
func TestLargePromptsTakeTime(t *testing.T) {
	f := newField(3)
	f.screen(true)
	s := Start{At: f.now, Stream: true, Uncached: 100000}
	f.Begin(f.ref(0), &s)
	f.pass(30 * time.Second)
	if f.screen(true); f.state(0) != Working {
		t.Errorf("%+v", f.Report(nil)[0])
	}
	f.First(f.now, f.ref(0), &s) // 0.3 ms per token
	s = Start{At: f.now, Stream: true, Uncached: 10000}
	f.Begin(f.ref(0), &s)
	f.pass(11 * time.Second)
	if f.screen(true); f.state(0) != Working {
		t.Errorf("%+v", f.Report(nil)[0])
	}
	f.pass(time.Second)
	if f.screen(true); f.state(0) != Ejected {
		t.Errorf("%+v", f.Report(nil)[0])
	}
}
