package instance

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// A second loss is not said in less than lossEvery, and a warning of seldom not in less than
// seldomEvery.
func TestLinesAtTheirBounds(t *testing.T) {
	limits.Below(t, "lossEvery", lossEvery, func(after time.Duration) bool {
		var l lossLog
		held, lost := leased(1), lostLease(0)
		if l.note(1, &held, &lost) == nil {
			t.Fatal("the first loss is not said")
		}
		return l.note(clock.Time(1).Add(after), &held, &lost) == nil
	})
}
