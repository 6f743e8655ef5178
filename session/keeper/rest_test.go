package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// TestDeadlinesCostFewTurns checks that a keeper needs about one turn per TTL for the deadlines of
// all renewed sessions.
func TestDeadlinesCostFewTurns(t *testing.T) {
	t.Parallel()
	for _, sessions := range []int{1, 200} {
		b := leadingBench(t)
		for n := range sessions {
			peer := nodeidtest.ID(uint64(n + 1))
			b.open(peer)
		}
		turns := 0
		for end := b.now.Add(60 * benchTTL); b.now.Before(end); turns++ {
			b.advance(max(b.core.Next().Sub(b.now), time.Millisecond))
			for id, s := range b.core.leases.sessions { // as if each session had been renewed now
				s.deadline = b.now.Add(s.ttl - b.core.stalled)
				if s.expiring {
					t.Fatalf("session %d is ended", id)
				}
			}
			b.turn()
		}
		if turns > 80 {
			t.Errorf("%d turns for the deadlines of %d sessions in 60 TTLs, want about one in each", turns, sessions)
		}
		if b.core.stalled != 0 {
			t.Errorf("rest is taken for a stall of %v", b.core.stalled)
		}
	}
}

// TestAStallThatIsNotNoticedLeavesTimeToRenew checks that after a stall that is too short to be
// detected, each session has at least watchBefore-stallAfter left.
func TestAStallThatIsNotNoticedLeavesTimeToRenew(t *testing.T) {
	t.Parallel()
	for stall := time.Duration(0); stall < 3*benchTTL; stall += 50 * time.Millisecond {
		b := leadingBench(t)
		id := b.open(nodeidtest.ID(1))
		b.turn()
		b.advance(stall)
		b.turn()
		left := b.core.leases.session(id).deadline.Sub(b.core.elapsed())
		if left < watchBefore-stallAfter {
			t.Fatalf("after a stall of %v session %d has only %v", stall, id, left)
		}
		if !b.alive(id) {
			t.Fatalf("after a stall of %v session %d is ended", stall, id)
		}
	}
}
