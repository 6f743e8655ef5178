package mortisetest_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

func TestKillAndStart(t *testing.T) {
	both(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		for _, i := range []int{cluster.Follower(), cluster.Leader()} {
			next, killed := (i+1)%3, cluster.Node(i)
			lock(t, killed, "k")
			granted := later(t, cluster.Node(next), "k")
			cluster.Await("k", 1, 1)
			began := time.Now()
			cluster.Kill(i)
			if _, err := killed.Lock(t.Context(), "other"); !errors.Is(err, mortise.ErrClosed) ||
				cluster.Node(i) != killed {
				t.Errorf("a call on a killed node: %v", err)
			}
			theirs := <-granted
			if took := time.Since(began); took < ttl/2 {
				t.Errorf("the dead holder's lock was free after %v: it has said goodbye", took)
			}
			cluster.AwaitHolder("k", next)
			if again := cluster.Start(i); again == killed || again != cluster.Node(i) {
				t.Error("Start gave no new node, or not the one that Node gives")
			}
			cluster.Ready()
			unlock(t, theirs)
			unlock(t, lock(t, cluster.Node(i), "k"))
		}
	})
}

func TestADeadNodeSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{Configure: func(i int, c *mortise.Config) {
			if i == 0 {
				c.Logger = slog.New(slog.NewTextHandler(&log, nil)).With("of", "node 0")
			}
		}})
		before := log.count()
		cluster.Kill(0)
		if now := log.count(); before == 0 || now != before {
			t.Errorf("it had logged %d lines before Kill, and %d more after", before, now-before)
		}
		cluster.Start(0)
		cluster.Ready()
		if log.count() == before {
			t.Error("the next life logs nothing")
		}
	})
}

type lines struct {
	mu sync.Mutex
	n  int
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return len(b), nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// Without a majority nothing is granted and no node leads. The group recovers by itself when the
// nodes have been restarted.
func TestMostAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		last := cluster.Follower()
		cluster.Kill((last + 1) % 3)
		cluster.Kill((last + 2) % 3)
		if _, err := tryFor(t, cluster.Node(last), "k", 20*time.Second); err == nil {
			t.Error("one of three grants locks")
		}
		cluster.Start((last + 1) % 3)
		cluster.Start((last + 2) % 3)
		cluster.Ready()
		unlock(t, lock(t, cluster.Node(last), "k"))
	})
}

func TestLeaveAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		for i := range cluster.Len() {
			if err := cluster.Node(i).Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			cluster.Start(i)
			cluster.Ready()
		}
		unlock(t, lock(t, cluster.Node(0), "k"))
	})
}

// A group with a Config.Dir must survive when all its nodes are killed.
func TestConfigure(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		dir, asked := t.TempDir(), 0
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{Configure: func(i int, c *mortise.Config) {
			asked++
			c.Name, c.Dir, c.Secret = "orders-"+strconv.Itoa(i), filepath.Join(dir, strconv.Itoa(i)),
				"msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
		}})
		l := lock(t, cluster.Node(1), "k")
		if holder := cluster.AwaitHolder("k", 1).Queue[0].Holder; holder != "orders-1" {
			t.Errorf("held by %q", holder)
		}
		group := cluster.Node(0).Status().Group
		unlock(t, l)
		for i := range 3 {
			cluster.Kill(i)
		}
		for i := range 3 {
			cluster.Start(i)
		}
		cluster.Ready()
		if now := cluster.Node(0).Status().Group; now != group || asked != 6 {
			t.Errorf("the group was %s and is %s; Configure was asked %d times", group, now, asked)
		}
	})
}

func TestAlone(t *testing.T) {
	both(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 1)
		if cluster.Leader() != 0 || cluster.Len() != 1 {
			t.Error("it does not lead")
		}
		mine := lock(t, cluster.Node(0), "k")
		granted := later(t, cluster.Node(0), "k")
		cluster.Await("k", 1, 1)
		cluster.Lose(0)
		unlock(t, <-granted)
		wantLost(t, mine)
		cluster.Kill(0)
		cluster.Start(0)
		unlock(t, lock(t, cluster.Node(0), "k"))
	})
}
