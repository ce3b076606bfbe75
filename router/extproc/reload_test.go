package extproc

import (
	"testing"

	"github.com/presage-router/presage/features/request"
)

// TestSetParser: requests are read by the newest rules, from the next stream on.
func TestSetParser(t *testing.T) {
	l := newLab(t, labOptions{})
	l.run(errReset, join(wholeChat(), ok())...)
	if got := l.only().Priority; got != 0 {
		t.Fatalf("priority %d before", got)
	}
	p, err := request.NewParser(request.Config{Priorities: map[string]int{"": 7}})
	if err != nil {
		t.Fatal(err)
	}
	l.server.SetParser(p)
	l.run(errReset, join(wholeChat(), ok())...)
	if seen := l.observations(); len(seen) != 2 || seen[1].Priority != 7 {
		t.Errorf("priority %v", seen)
	}
	l.settled()
}
