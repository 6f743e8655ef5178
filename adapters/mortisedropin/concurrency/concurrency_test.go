package concurrency

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

func inBubble(t *testing.T, nodes int, test func(t *testing.T, c *mortisetest.Cluster)) {
	synctest.Test(t, func(t *testing.T) { test(t, mortisetest.New(t, nodes)) })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, node *mortise.Node, opts ...SessionOption) *Session {
	t.Helper()
	s, err := NewSession(node, opts...)
	check(t, err)
	return s
}

func TestMutexesExclude(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		ctx := t.Context()
		s, other := open(t, c.Node(0)), open(t, c.Node(1), WithTTL(0))
		defer s.Close()
		defer other.Close()
		if s.Lease() == other.Lease() || s.Lease() == 0 {
			t.Errorf("leases %d and %d", s.Lease(), other.Lease())
		}
		one, two := NewMutex(s, "a"), NewMutex(other, "a")
		if err := one.Unlock(ctx); err != ErrLockReleased {
			t.Errorf("unlock before: %v", err)
		}
		check(t, one.Lock(ctx))
		check(t, one.Lock(ctx)) // as in etcd
		check(t, one.TryLock(ctx))
		work := one.Context(ctx)
		if err := two.TryLock(ctx); err != ErrLocked || !errors.Is(two.Err(), mortise.ErrHeld) {
			t.Errorf("try: %v, because of %v", err, two.Err())
		}
		if err := NewMutex(s, "a").TryLock(ctx); err != ErrLocked {
			t.Errorf("try in the same session: %v", err)
		}
		token := one.Token()
		time.AfterFunc(time.Minute, func() { check(t, one.Unlock(ctx)) })
		check(t, two.Lock(ctx))
		if two.Token() <= token || work.Err() == nil || one.Token() != 0 || one.Context(ctx).Err() == nil {
			t.Errorf("tokens %d and %d, context %v", token, two.Token(), work.Err())
		}
		check(t, two.Unlock(ctx))
		if err := two.Unlock(ctx); err != ErrLockReleased || two.Key() != "a" {
			t.Errorf("unlock again: %v, key %q", err, two.Key())
		}
		if len(s.held)+len(other.held) != 0 {
			t.Errorf("the sessions keep %d and %d locks that are unlocked", len(s.held), len(other.held))
		}
	})
}

func TestASessionThatIsLost(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		ctx := t.Context()
		s := open(t, c.Node(0), WithTTL(1))
		m := NewMutex(s, "a")
		check(t, m.Lock(ctx))
		waits := make(chan error, 1)
		go func() { waits <- NewMutex(s, "a").Lock(ctx) }()
		synctest.Wait()
		c.Isolate(0)
		<-s.Done()
		if err := m.Err(); !errors.Is(err, mortise.ErrLost) || s.Ctx().Err() == nil {
			t.Errorf("the mutex: %v", err)
		}
		if err := <-waits; err != ErrSessionExpired {
			t.Errorf("a call that waits: %v", err)
		}
		c.Heal()
		c.Ready(0)
		if err := m.Unlock(ctx); err != ErrSessionExpired || !errors.Is(m.Err(), mortise.ErrLost) {
			t.Errorf("unlock: %v, because of %v", err, m.Err())
		}
		if err := m.Lock(ctx); err != ErrSessionExpired {
			t.Errorf("lock: %v", err)
		}
		check(t, s.Close())
		next := open(t, c.Node(0))
		check(t, NewMutex(next, "a").Lock(ctx))
		check(t, next.Close()) // unlocks it
		check(t, next.Close())
	})
}

func TestCloseFreesEverything(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx := t.Context()
		s, other := open(t, c.Node(0)), open(t, c.Node(0))
		defer other.Close()
		m := NewMutex(s, "a")
		check(t, m.Lock(ctx))
		check(t, NewElection(s, "e").Campaign(ctx, "x"))
		check(t, NewMutex(other, "b").Lock(ctx))
		leaders := NewElection(s, "e").Observe(ctx) // not received
		waits := make(chan error, 1)
		go func() { waits <- NewMutex(s, "b").Lock(ctx) }()
		synctest.Wait()
		check(t, s.Close())
		if err := <-waits; err != ErrSessionExpired {
			t.Errorf("a call that waits: %v", err)
		}
		if _, is := <-leaders; is {
			t.Error("an observer goes on")
		}
		if _, is := <-NewElection(s, "e").Observe(ctx); is {
			t.Error("an observer begins")
		}
		check(t, NewMutex(other, "a").TryLock(ctx))
		check(t, NewElection(other, "e").Campaign(ctx, "y"))
		if err := m.Unlock(ctx); err != nil {
			t.Errorf("unlock after Close: %v", err)
		}
	})
}

// The context of WithContext ends the session, but not the locks.
func TestTheContextOfASession(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		s := open(t, c.Node(0), WithContext(ctx))
		m := NewMutex(s, "a")
		check(t, m.Lock(t.Context()))
		cancel()
		<-s.Done()
		check(t, m.Err())
		if err := NewMutex(s, "b").Lock(t.Context()); err != ErrSessionExpired {
			t.Errorf("lock: %v", err)
		}
		check(t, s.Close())
		if _, err := NewSession(c.Node(0), WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("a session with an ended context: %v", err)
		}
	})
}

func TestElections(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		ctx := t.Context()
		s, other := open(t, c.Node(0)), open(t, c.Node(1))
		defer s.Close()
		defer other.Close()
		one, two := NewElection(s, "e"), NewElection(other, "e")
		if _, err := one.Leader(ctx); err != ErrElectionNoLeader {
			t.Errorf("leader of none: %v", err)
		}
		if err := one.Proclaim(ctx, "x"); err != ErrElectionNotLeader {
			t.Errorf("proclaim: %v", err)
		}
		check(t, one.Resign(ctx))
		watching, stop := context.WithCancel(ctx)
		var seen []string
		observed := make(chan bool)
		leaders := two.Observe(watching)
		go func() {
			defer close(observed)
			for leader := range leaders {
				seen = append(seen, string(leader.Kvs[0].Value))
			}
		}()
		synctest.Wait()
		check(t, one.Campaign(ctx, "a"))
		check(t, one.Campaign(ctx, "b")) // as in etcd, it proclaims
		if leader, err := two.Leader(ctx); err != nil || string(leader.Kvs[0].Value) != "b" ||
			leader.Kvs[0].CreateRevision != one.Rev() || string(leader.Kvs[0].Key) != one.Key() {
			t.Errorf("leader %+v, %v", leader, err)
		}
		rev, work := one.Rev(), one.Context(ctx)
		next := make(chan error, 1)
		go func() { next <- two.Campaign(ctx, strings.Repeat("c", 1000)) }()
		synctest.Wait()
		check(t, one.Resign(ctx))
		check(t, <-next)
		if two.Rev() <= rev || work.Err() == nil || one.Rev() != 0 || !errors.Is(one.Err(), ErrElectionNotLeader) {
			t.Errorf("revisions %d and %d, context %v, %v", rev, two.Rev(), work.Err(), one.Err())
		}
		time.Sleep(time.Second)
		stop()
		<-observed
		if len(seen) != 3 || seen[0] != "a" || seen[1] != "b" || len(seen[2]) != 1000 {
			t.Errorf("seen %.30q", seen)
		}
		check(t, two.Resign(ctx))
	})
}
