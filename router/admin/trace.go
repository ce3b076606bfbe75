package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/presage-router/presage/internal/telemetry"
)

// Rows hands out logged requests as lines, oldest first, of those decided from since on and before
// until; a zero time is no limit. A line belongs to each until it returns; an error of each ends it.
type Rows func(ctx context.Context, since, until time.Time, each func(at time.Time, line []byte) error) error

const (
	defaultRows = 1_000_000
	mostRows    = 10_000_000
	// stalled is how long a client may take for some hundred rows: whoever reads keeps old parts of the
	// log from being given back.
	stalled = 30 * time.Second

	trailerRows = "X-Presage-Rows" // number of rows
	trailerNext = "X-Presage-Next" // where the limit cut: the since of the next request
)

// errEnough ends an export at its limit.
var errEnough = errors.New("enough")

// trace streams logged requests, one JSON object a line. One export runs at a time. One that cannot
// be completed breaks the connection, so that nobody takes the part for the whole.
func (p *pages) trace(w http.ResponseWriter, r *http.Request) {
	if p.Trace == nil {
		refuse(w, http.StatusNotFound, "trace: nothing is logged; set trace.dir in the configuration")
		return
	}
	query := r.URL.Query()
	since, err := moment("since", query.Get("since"), p.Now())
	var until time.Time
	if err == nil {
		until, err = moment("until", query.Get("until"), p.Now())
	}
	limit := defaultRows
	if text := query.Get("limit"); err == nil && text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > mostRows {
			err = fmt.Errorf("limit: %s: not a number from 1 to %d", telemetry.Clean(text), mostRows)
		}
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if p.exporting.Swap(true) {
		refuse(w, http.StatusTooManyRequests, "trace: another export is under way; ask again when it has ended")
		return
	}
	defer p.exporting.Store(false)

	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Trailer", trailerRows+", "+trailerNext)
	client := http.NewResponseController(w)
	rows := 0
	err = p.Trace(r.Context(), since, until, func(at time.Time, line []byte) error {
		if rows == limit {
			w.Header().Set(trailerNext, at.UTC().Format(time.RFC3339Nano))
			return errEnough
		}
		if rows%256 == 0 {
			_ = client.SetWriteDeadline(p.Now().Add(stalled)) // without one the client may take longer
		}
		rows++
		_, err := w.Write(line)
		return err
	})
	switch {
	case err == nil || errors.Is(err, errEnough):
		w.Header().Set(trailerRows, strconv.Itoa(rows))
		_ = client.SetWriteDeadline(time.Time{})
	case rows == 0:
		w.Header().Del("Trailer")
		refuse(w, http.StatusInternalServerError, "trace: "+telemetry.Clean(err.Error()))
	default:
		panic(http.ErrAbortHandler)
	}
}

// moment reads a date, a time, or how long ago; "" is the zero time.
func moment(key, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: %q is no time; write 2026-05-01, 2026-05-01T12:00:00Z, or 24h for a day ago", key, telemetry.Clean(text))
}
