package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes one line per record, as "text" or "json". Messages, keys
// and values pass [Clean], so that nothing a client, an engine or a pod label says can forge a
// record or move a terminal's cursor.
func NewLogger(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(cleaner{slog.NewTextHandler(w, opts)}), nil
	case "json":
		return slog.New(cleaner{slog.NewJSONHandler(w, opts)}), nil
	}
	return nil, fmt.Errorf("log format: %q unknown; text or json", format)
}

// cleaner passes records on with their text made safe.
type cleaner struct{ next slog.Handler }

// Enabled implements [slog.Handler].
func (c cleaner) Enabled(ctx context.Context, l slog.Level) bool { return c.next.Enabled(ctx, l) }

// Handle implements [slog.Handler].
func (c cleaner) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, Clean(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(cleanAttr(a))
		return true
	})
	return c.next.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (c cleaner) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = cleanAttr(a)
	}
	return cleaner{c.next.WithAttrs(out)}
}

// WithGroup implements [slog.Handler].
func (c cleaner) WithGroup(name string) slog.Handler { return cleaner{c.next.WithGroup(Clean(name))} }

func cleanAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(Clean(v.String()))
	case slog.KindGroup:
		group := make([]slog.Attr, len(v.Group()))
		for i, g := range v.Group() {
			group[i] = cleanAttr(g)
		}
		v = slog.GroupValue(group...)
	case slog.KindAny: // errors, addresses and whatever else prints itself
		v = slog.StringValue(Clean(fmt.Sprint(v.Any())))
	default: // numbers, times, durations, booleans
	}
	return slog.Attr{Key: Clean(a.Key), Value: v}
}

var _ slog.Handler = cleaner{}
