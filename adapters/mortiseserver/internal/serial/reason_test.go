package serial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/mortise-lock/mortise"
)

// reasons returns the reason for each error of mortise.
func reasons() map[string]struct {
	err  error
	want Reason
} {
	type row = struct {
		err  error
		want Reason
	}
	return map[string]row{
		"ErrHeld": {mortise.ErrHeld, Busy}, "ErrQueueFull": {mortise.ErrQueueFull, Busy},
		"ErrNotReady": {mortise.ErrNotReady, Away}, "ErrOverloaded": {mortise.ErrOverloaded, Away},
		"ErrNoRoom": {mortise.ErrNoRoom, Away}, "ErrLeaving": {mortise.ErrLeaving, Away},
		"ErrClosed": {mortise.ErrClosed, Away}, "ErrInJeopardy": {mortise.ErrInJeopardy, Away},
		"ErrBadKey": {mortise.ErrBadKey, BadKey},
		"ErrLost":   {mortise.ErrLost, Mistake}, "ErrUnlocked": {mortise.ErrUnlocked, Mistake},
		"ErrUnsupported": {mortise.ErrUnsupported, Mistake}, "ErrVoteLost": {mortise.ErrVoteLost, Mistake},
		"ErrConflict": {mortise.ErrConflict, Mistake}, "ErrKept": {mortise.ErrKept, Mistake},
		"ErrNotHeld": {mortise.ErrNotHeld, Mistake}, "ErrBadRequest": {mortise.ErrBadRequest, Mistake},
		"ErrNotAllowed": {mortise.ErrNotAllowed, Mistake},
		"the wait":      {&endError{reason: errWaited}, Busy}, "the lease": {&endError{reason: errAway}, Away},
		"another": {errors.New("x"), Mistake},
	}
}

// TestEachErrorHasItsReason checks the reason of each error of mortise, while the caller waits and
// when its context has ended: then the group may still say that it cannot grant the lock.
func TestEachErrorHasItsReason(t *testing.T) {
	text, err := os.ReadFile("../../../../errors.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(Err\w+) = `).FindAllStringSubmatch(string(text), -1)
	if len(names) < 15 {
		t.Fatalf("found only %v", names)
	}
	for _, name := range names {
		if _, is := reasons()[name[1]]; !is {
			t.Errorf("mortise.%s has no row", name[1])
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, row := range reasons() {
		wrapped := fmt.Errorf("so: %w", row.err)
		if got := reason(t.Context(), wrapped); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
		want := row.want
		if want != Busy && want != Away {
			want = Ended
		}
		if got := reason(ended, wrapped); got != want {
			t.Errorf("%s, after the end of the context: %d, want %d", name, got, want)
		}
	}
}
