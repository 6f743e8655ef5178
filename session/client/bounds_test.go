package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestATermAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxTerm", uint64(maxTerm), func(n uint64) bool {
		b := newBench(t)
		b.want("1: open nonce 1")
		b.reply(nodeidtest.ID(1), redirect(n, nodeidtest.ID(9)))
		return b.turn() == "9: open nonce 1"
	})
}

func TestExcusesAtTheirBounds(t *testing.T) {
	excused := func(late time.Duration) bool {
		f := finder{answerTimeout: time.Second}
		return f.excuse(clock.Time(time.Hour).Add(late), clock.Time(time.Hour), clock.Time(2*time.Hour))
	}
	limits.Below(t, "starvedFor", starvedFor, func(late time.Duration) bool { return !excused(late) })
	limits.AtMost(t, "pausedFor", pausedFor, excused)
	limits.AtMost(t, "maxExcuses", maxExcuses, func(n int) bool {
		f := finder{answerTimeout: time.Second}
		for range n - 1 {
			f.excuse(clock.Time(starvedFor), 0, clock.Time(time.Hour))
		}
		return f.excuse(clock.Time(starvedFor), 0, clock.Time(time.Hour))
	})
}

func TestPartsOfTheStaysAtTheirBounds(t *testing.T) {
	parts := func(stays int) int {
		var a keptAll
		a.make(&Config{Stays: stays})
		return len(a.all())
	}
	limits.AtMost(t, "keptParts", keptParts, func(n int) bool { return parts(n*leastPart) == n })
	limits.Below(t, "leastPart", leastPart, func(n int) bool { return parts(leastPart+n) == 1 })
	if n := parts(-1); n != 1 {
		t.Errorf("without stays there are %d parts", n)
	}
}
