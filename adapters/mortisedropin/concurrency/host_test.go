package concurrency

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// The usual loop over etcd's package: a new session when the old one is done. A session whose lease
// has expired needs no Close in etcd. A node has room for 128 sessions.
func TestALoopThatReplacesLostSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
		for i := range 140 {
			s, err := NewSession(c.Node(0), WithTTL(1))
			if err != nil {
				t.Fatalf("session %d: %v", i+1, err)
			}
			if err := NewMutex(s, "leader").Lock(t.Context()); err != nil {
				t.Fatalf("lock %d: %v", i+1, err)
			}
			c.Lose(0)
			<-s.Done()
			c.Ready(0)
		}
	})
}

// A session that gives itself back is as one that was closed: Close waits for it, and the owner of
// a lock learns of the loss.
func TestCloseAfterALoss(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		s := open(t, c.Node(0))
		m, e := NewMutex(s, "a"), NewElection(s, "e")
		check(t, m.Lock(t.Context()))
		check(t, e.Campaign(t.Context(), "x"))
		c.Lose(0)
		<-s.Done()
		c.Ready(0)
		<-s.ended
		if err := m.Unlock(t.Context()); err != ErrSessionExpired || !errors.Is(m.Err(), mortise.ErrLost) {
			t.Errorf("unlock: %v, because of %v", err, m.Err())
		}
		if err := e.Proclaim(t.Context(), "y"); err != ErrElectionNotLeader || !errors.Is(e.last, mortise.ErrLost) {
			t.Errorf("proclaim: %v, because of %v", err, e.last)
		}
		if err := e.Resign(t.Context()); err != ErrSessionExpired || !errors.Is(e.Err(), mortise.ErrLost) {
			t.Errorf("resign: %v, because of %v", err, e.Err())
		}
		if err := e.Campaign(t.Context(), "z"); err != ErrSessionExpired {
			t.Errorf("campaign: %v", err)
		}
		check(t, s.Close())
	})
}

// A call whose context has ended holds nothing later, and returns the error of the context itself.
func TestACallerThatHasGivenUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		s, other := open(t, c.Node(0)), open(t, c.Node(1))
		defer s.Close()
		defer other.Close()
		holder := NewMutex(other, "a")
		check(t, holder.Lock(t.Context()))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m, e := NewMutex(s, "a"), NewElection(s, "a")
		if err := m.Lock(short); err != context.DeadlineExceeded || strings.Count(m.Err().Error(), `"a"`) != 1 {
			t.Errorf("lock: %v, because of %v", err, m.Err())
		}
		if err := e.Campaign(short, "x"); err != context.DeadlineExceeded || strings.Count(e.Err().Error(), `"a"`) != 1 {
			t.Errorf("campaign: %v, because of %v", err, e.Err())
		}
		check(t, holder.Unlock(t.Context()))
		time.Sleep(time.Minute)
		if info, err := c.Node(0).Peek(t.Context(), "a"); err != nil || info.Held > 0 {
			t.Errorf("a minute later %d hold the lock: %v", info.Held, err)
		}
	})
}

// buffer is the log of a node.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), text)
}

// Only a session that asks for a longer TTL than the group has is told that it gets a shorter one.
func TestTheWarningOfAShorterLease(t *testing.T) {
	for name, c := range map[string]struct {
		options  []SessionOption
		warnings int
	}{"by default": {nil, 0}, "as long": {[]SessionOption{WithTTL(2)}, 0}, "longer": {[]SessionOption{WithTTL(60)}, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &buffer{}
				node := mortisetest.NewWith(t, 1, mortisetest.Options{Configure: func(_ int, c *mortise.Config) {
					c.Logger = slog.New(slog.NewTextHandler(log, nil))
				}}).Node(0)
				s := open(t, node, c.options...)
				if ttl := s.session.TTL(); ttl != 2*time.Second {
					t.Errorf("the TTL is %v", ttl)
				}
				check(t, s.Close())
				if n := log.count("shorter lease"); n != c.warnings {
					t.Errorf("%d warnings, want %d", n, c.warnings)
				}
			})
		})
	}
}
