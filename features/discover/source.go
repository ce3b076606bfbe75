package discover

import (
	"context"
	"fmt"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Update is what a source has to say: the whole set of endpoints as it is now, or, with Err, that it
// could not be read, so that the set in force stays.
type Update struct {
	Endpoints []*fleet.Endpoint
	Err       error
}

// Source finds endpoints. Run sends an update when the set is first known, whenever it changes, when
// it can no longer be read (once per reason) and when it can again, until ctx is done. It never
// returns before; a set it sent is not touched again.
type Source interface {
	Run(ctx context.Context, out chan<- Update)
}

// Follow keeps a fleet at what a source says until ctx is done. After each update it calls report,
// if not nil, from its own goroutine, with what changed or with an error that says what stays in
// force. An update that changes nothing, as after an error is over, is reported with an empty change.
func Follow(ctx context.Context, f *fleet.Fleet, s Source, report func(fleet.Change, error)) {
	updates := make(chan Update)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, updates)
	}()
	count := 0
	for {
		select {
		case <-ended:
			return
		case u := <-updates:
			change, err := fleet.Change{}, u.Err
			if err == nil {
				change, err = f.Sync(time.Now(), u.Endpoints)
			}
			if err == nil {
				count = len(u.Endpoints)
			} else {
				err = fmt.Errorf("%w (endpoints in force meanwhile: %d)", err, count)
			}
			if report != nil {
				report(change, err)
			}
		}
	}
}

// send hands over an update, unless ctx ends first.
func send(ctx context.Context, out chan<- Update, u Update) {
	select {
	case out <- u:
	case <-ctx.Done():
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
