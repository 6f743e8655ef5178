package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

func TestLeaseArithmetic(t *testing.T) {
	t.Parallel()
	const sent = clock.Time(time.Hour)
	l := lease{ttl: 10 * time.Second, sent: sent}
	if got := l.deadline().Sub(sent); got != 9800*time.Millisecond {
		t.Errorf("deadline is %v behind the sending, want TTL - TTL/50", got)
	}
	for _, c := range []struct {
		after time.Duration
		want  LeaseState
		short bool
	}{
		{0, Safe, false},
		{6666 * time.Millisecond, Safe, false},
		{6667 * time.Millisecond, Jeopardy, false},
		{8800 * time.Millisecond, Jeopardy, false},
		{8801 * time.Millisecond, Jeopardy, true},
		{9799 * time.Millisecond, Jeopardy, true},
		{9800 * time.Millisecond, Lost, true},
		{time.Hour, Lost, true},
	} {
		now := sent.Add(c.after)
		if got := l.state(now); got != c.want {
			t.Errorf("after %v the lease is %v, want %v", c.after, got, c.want)
		}
		if got := l.short(now); got != c.short {
			t.Errorf("after %v short is %v, want %v", c.after, got, c.short)
		}
	}
	l.renewed(sent.Add(-time.Second))
	if l.sent != sent {
		t.Error("an older renewal moved the lease back")
	}
	l.renewed(sent.Add(time.Second))
	if l.sent != sent.Add(time.Second) {
		t.Error("a newer renewal did not move the lease")
	}
	var none lease
	none.renewed(sent)
	if none.state(sent) != Lost || none.deadline() != 0 || !none.short(sent) {
		t.Errorf("no lease is %v", none.state(sent))
	}
}

func TestRenewalsOfLongLeasesAreFrequent(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]time.Duration{
		time.Second: time.Second / 3, 6 * time.Second: 2 * time.Second, 10 * time.Second: 3 * time.Second,
		10 * time.Minute: 3 * time.Second,
	} {
		if got := renewEvery(ttl); got != want {
			t.Errorf("TTL %v is renewed every %v, want %v", ttl, got, want)
		}
	}
	b := newBench(t)
	b.core.finder.answerTimeout = time.Second
	b.core.askTTL, b.core.finder.pipeline = 10*time.Minute, true
	for range 20 {
		b.core.unanswered(b.now)
	}
	if b.core.finder.answerTimeout > 3*time.Second {
		t.Errorf("a named leader gets %v to answer", b.core.finder.answerTimeout)
	}
}

// TestMarginCoversDrift checks the margin with two clocks that are 1% wrong in opposite directions.
func TestMarginCoversDrift(t *testing.T) {
	t.Parallel()
	for ttl := time.Second; ttl <= 10*time.Minute; ttl += 100 * time.Millisecond {
		held := lease{ttl: ttl}.deadline().Sub(0)
		slowHolder := time.Duration(float64(held) / 0.995)
		fastKeeper := time.Duration(float64(ttl) / 1.005)
		if slowHolder >= fastKeeper {
			t.Fatalf("TTL %v: a holder 0.5%% slow has a lease for %v, a keeper 0.5%% fast waits %v", ttl, slowHolder,
				fastKeeper)
		}
	}
}
