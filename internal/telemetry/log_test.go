package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
)

type nasty struct{}

func (nasty) LogValue() slog.Value { return slog.StringValue("value\nlevel=ERROR") }

// TestB49LogsCannotBeForged: whatever text a record carries, it stays one line of printable
// characters, in both formats.
func TestB49LogsCannotBeForged(t *testing.T) {
	const evil = "m\nlevel=error msg=forged\x1b[2J\u2028\u202e\x00\xff"
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			log, err := NewLogger(&out, format, slog.LevelInfo)
			if err != nil {
				t.Fatal(err)
			}
			log = log.With("model", evil, evil, 1).WithGroup("g\nroup")
			log.Warn("unknown "+evil,
				slog.String(evil, evil), slog.Any("error", errors.New(evil)), slog.Any("value", nasty{}),
				slog.Group("inner", slog.String("id", evil)), slog.Any("list", []string{evil}), slog.String("long", strings.Repeat("x", 10_000)))
			log.Debug("not shown")
			text := out.String()
			if n := strings.Count(text, "\n"); n != 1 || !strings.HasSuffix(text, "\n") {
				t.Errorf("%d lines: %s", n, text)
			}
			for _, r := range strings.TrimSuffix(text, "\n") {
				if !unicode.IsPrint(r) {
					t.Errorf("%U in %s", r, text)
				}
			}
			if len(text) > 4096 {
				t.Errorf("%d bytes", len(text))
			}
			if format == "json" && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", text)
			}
		})
	}
}

func TestLoggerKeepsWhatIsHarmless(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "text", slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("listening", "address", "127.0.0.1:9002", "endpoints", 8, "after", 200*time.Millisecond, "strict", true)
	_, got, _ := strings.Cut(out.String(), " ")
	if want := "level=INFO msg=listening address=127.0.0.1:9002 endpoints=8 after=200ms strict=true\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if _, err := NewLogger(&out, "xml", slog.LevelInfo); err == nil || err.Error() != `log format: "xml" unknown; text or json` {
		t.Errorf("error %v", err)
	}
}
