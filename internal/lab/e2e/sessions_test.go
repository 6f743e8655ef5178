package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/session/client"
)

func (f *fleet) session(i int, ttl time.Duration) *mortise.Session {
	f.t.Helper()
	s, err := f.nodes[i].NewSession(brief(f.t), ttl)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func must(t *testing.T, s *mortise.Session, key string) *mortise.Lock {
	t.Helper()
	l, err := s.Lock(brief(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestASessionOfOnesOwnHasItsOwnTTL checks a user's own session whose TTL is shorter than that of
// the node. In a short outage only its locks may be lost.
func TestASessionOfOnesOwnHasItsOwnTTL(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5, func(c *mortise.Config) { c.SessionTTL = 10 * time.Second })
		on, other := f.follower(), f.leader()
		s := f.session(on, 2*time.Second)
		if long := f.session(on, time.Hour); s.TTL() != 2*time.Second || long.TTL() != 10*time.Second {
			t.Errorf("TTLs %v and %v", s.TTL(), long.TTL())
		}
		short, long := must(t, s, "short"), f.lock(on, "long")
		f.isolate(on)
		time.Sleep(5 * time.Second)
		f.rejoin(on)
		wantIs(t, short.Err(), mortise.ErrLost)
		if err := long.Err(); err != nil {
			t.Error(err)
		}
		again := must(t, s, "short")
		if again.Token() <= short.Token() {
			t.Error("tokens")
		}
		f.crash(on)
		crashed := time.Now()
		unlock(t, f.lock(other, "short"))
		sooner := time.Since(crashed)
		unlock(t, f.lock(other, "long"))
		later := time.Since(crashed)
		if sooner > 4*time.Second || later < 6*time.Second {
			t.Errorf("free after %v, the node's after %v", sooner, later)
		}
		f.nothingLeft()
	})
}

func TestSessionsOutliveTheirLeader(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		on := f.follower()
		s, mine := f.session(on, 3*time.Second), f.lock(on, "mine")
		l := must(t, s, "k")
		if status := f.nodes[on].Status(); status.Held != 2 {
			t.Errorf("%d held", status.Held)
		}
		f.crash(f.leader())
		time.Sleep(10 * time.Second)
		if l.Err() != nil || mine.Err() != nil {
			t.Fatal(l.Err(), mine.Err())
		}
		health, err := f.nodes[on].Health(brief(t))
		if err != nil || health.Eligible != 3 {
			t.Errorf("%+v, %v", health, err)
		}
		again, err := s.Acquire(l.Context(t.Context()), mortise.Request{Key: "k"})
		if err != nil || again.Token() != l.Token() {
			t.Fatalf("entered again: %v", err)
		}
		unlock(t, again)
		// The key is locked in another session than the lock in the context.
		under, err := f.nodes[on].Lock(l.Context(t.Context()), "under")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, under)
		if err := s.Close(brief(t)); !errors.Is(err, client.ErrStillHeld) {
			t.Errorf("closed though it holds: %v", err)
		}
		unlock(t, l)
		if err := s.Close(brief(t)); err != nil {
			t.Error(err)
		}
		_, err = s.Lock(t.Context(), "k")
		wantIs(t, err, mortise.ErrClosed)
		unlock(t, mine)
		f.nothingLeft()
	})
}

func TestSessionsEndWithTheirNode(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		s := f.session(0, 2*time.Second)
		l := must(t, s, "k")
		go func() {
			<-l.Context(t.Context()).Done()
			time.Sleep(time.Second)
			l.Unlock(context.Background())
		}()
		began := time.Now()
		if err := f.nodes[0].Leave(brief(t)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < time.Second || took > 5*time.Second {
			t.Errorf("Leave took %v", took)
		}
		_, err := s.Lock(t.Context(), "k")
		wantIs(t, err, mortise.ErrClosed)
		_, err = f.nodes[0].NewSession(t.Context(), 2*time.Second)
		wantIs(t, err, mortise.ErrClosed)
		f.nodes[0] = nil
		_, err = f.nodes[1].NewSession(t.Context(), time.Millisecond)
		wantIs(t, err, mortise.ErrBadRequest)
		for range 128 {
			f.session(1, time.Second)
		}
		_, err = f.nodes[1].NewSession(brief(t), time.Second)
		wantIs(t, err, mortise.ErrNoRoom)
	})
}

// TestASessionIsClosedWhileItsNodeLeaves closes a session while Leave waits for a lock of the node.
// Nothing is held at the end, so Leave has no error, and the node's own session ends at once.
func TestASessionIsClosedWhileItsNodeLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		s, l := f.session(0, 2*time.Second), f.lock(0, "k")
		left := make(chan error, 1)
		go func() { left <- f.nodes[0].Leave(brief(t)) }()
		<-l.Context(t.Context()).Done()
		if err := s.Close(brief(t)); err != nil {
			t.Error(err)
		}
		unlock(t, l)
		if err := <-left; err != nil {
			t.Error(err)
		}
		sessions, err := f.nodes[1].Sessions(brief(t))
		if err != nil || len(sessions) != 2 {
			t.Errorf("%d sessions, not those of the two that stay: %+v, %v", len(sessions), sessions, err)
		}
		f.nodes[0] = nil
		f.nothingLeft()
	})
}
