package gateway

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// Beyond its limit a spool is a pipe: the writer waits for the reader, and memory stays bounded.
func TestSpoolWaitsForReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpool(t.Context(), 100)
		r := s.open()
		written := 0
		go func() {
			for range 50 {
				n, _ := s.Write(make([]byte, 10))
				written += n
			}
			s.end()
		}()
		synctest.Wait()
		if written > 100 {
			t.Errorf("%d bytes were taken with nobody reading", written)
		}
		got, err := io.ReadAll(r)
		if len(got) != 500 || err != nil {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if cap(s.buf) > 1024 || s.kept() {
			t.Errorf("a body past the limit is kept: %d bytes", cap(s.buf))
		}
		if _, err := s.open().Read(make([]byte, 1)); !errors.Is(err, errNotKept) {
			t.Errorf("second reader: %v", err)
		}
	})
}

func TestSpoolIsReadAgain(t *testing.T) {
	s := newSpool(t.Context(), 100)
	_, _ = s.Write([]byte("hello "))
	first := s.open()
	_, _ = io.ReadFull(first, make([]byte, 3))
	first.Close()
	_, _ = s.Write([]byte("world"))
	s.end()
	second := s.open()
	if got, err := io.ReadAll(second); string(got) != "hello world" || err != nil {
		t.Errorf("second reader got %q, %v", got, err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("first reader still reads: %v", err)
	}
}

// An endpoint that answers without reading must not block the picker's other messages.
func TestSpoolDropsWhatNobodyReads(t *testing.T) {
	s := newSpool(t.Context(), 100)
	s.open().Close()
	for range 100 {
		if n, err := s.Write(make([]byte, 64)); n != 64 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if cap(s.buf) > 256 {
		t.Errorf("%d bytes kept", cap(s.buf))
	}
}

func TestSpoolEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newSpool(ctx, 4)
		done := make(chan error, 2)
		r := s.open()
		go func() { _, err := r.Read(make([]byte, 1)); done <- err }()
		synctest.Wait()
		cancel(errIdle)
		if err := <-done; !errors.Is(err, errIdle) {
			t.Errorf("read ended with %v", err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, errIdle) {
			t.Errorf("write ended with %v", err)
		}
	})
}
