package e2e

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestStickyEndsWithItsInstance ends an instance that keeps a free lock. Another instance must get
// the lock at once, and must not wait for the end of the session. Only a leader that is closed may
// end before another voter has its release. Then the lock is free when the session ends, as the
// document of Node.Close says of held locks.
func TestStickyEndsWithItsInstance(t *testing.T) {
	slow.UnderRace(t)
	for _, leads := range []bool{false, true} {
		for _, leaves := range []bool{true, false} {
			t.Run(fmt.Sprintf("leads=%v/leaves=%v", leads, leaves), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL, c.StickyUnused = time.Minute, time.Hour })
					holder, limit := f.leader(), time.Duration(0)
					if !leads {
						holder = f.follower()
					} else if !leaves {
						limit = time.Minute + failoverLimit
					}
					other := (holder + 1) % 3
					r := stickily{key: "k"}
					unlock(t, f.acquire(holder, r))
					last := f.acquire(holder, r)
					unlock(t, last)
					time.Sleep(10 * time.Second)
					if n := f.peek(other, "k").Held; n != 1 {
						t.Fatalf("%d holders: the lock is not kept", n)
					}
					if leaves {
						f.depart(holder, true)
					} else {
						f.close(holder)
					}
					ended := time.Now()
					next := f.acquire(other, r)
					if took := time.Since(ended); took > limit {
						t.Errorf("another instance was granted the lock %v later, limit %v", took, limit)
					}
					if next.Token() <= last.Token() {
						t.Errorf("token %d after %d", next.Token(), last.Token())
					}
					unlock(t, next)
				})
			})
		}
	}
}

// TestStickyEndsWithItsSession closes a user's own session that keeps a free lock.
func TestStickyEndsWithItsSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.StickyUnused = time.Hour })
		on := f.follower()
		s, r := f.session(on, 2*time.Second), stickily{key: "k"}
		for range 2 {
			l, err := acquire(t.Context(), s, r)
			if err != nil {
				t.Fatal(err)
			}
			unlock(t, l)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed := time.Now()
		unlock(t, f.acquire(on, r))
		if took := time.Since(closed); took > 0 {
			t.Errorf("the node's own session was granted the lock %v later", took)
		}
	})
}

// TestStickyEndsWithItsGroup lets two of three voters retire. So the third instance restarts in
// place, and all three found a new group. The third instance keeps one lock in use and one free.
func TestStickyEndsWithItsGroup(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.StickyUnused = time.Hour })
		old := f.nodes[2].Status().Group
		before := map[string]*mortise.Lock{}
		for _, key := range []string{"free", "used"} {
			unlock(t, f.acquire(2, stickily{key: key}))
			before[key] = f.acquire(2, stickily{key: key})
		}
		unlock(t, before["free"])
		poison(f, 0)
		poison(f, 1)
		for f.nodes[0].Status().Group == old || !f.nodes[0].Status().Joined {
			time.Sleep(100 * time.Millisecond)
		}
		f.ready()
		synctest.Wait()
		wantIs(t, before["used"].Err(), mortise.ErrLost)
		wantIs(t, before["used"].Unlock(t.Context()), mortise.ErrLost)
		for key, before := range before {
			next := f.lock(0, key)
			if next.Token() <= before.Token() {
				t.Errorf("%s: token %d after %d", key, next.Token(), before.Token())
			}
			granted := f.later(2, stickily{key: key})
			waits(t, "a caller of a lock that another instance holds", granted)
			unlock(t, next)
			unlock(t, comes(t, "the next caller", granted))
		}
	})
}
