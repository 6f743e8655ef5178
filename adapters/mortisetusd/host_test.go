package mortisetusd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// A request that has given up holds nothing later. After a lost lock the client repeats its request
// at the same instance, and its lock is granted.
func TestRequestsAfterAnEnd(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, second := lockOf(t, cluster, 0, "one"), lockOf(t, cluster, 1, "one")
	mustLock(t, first, nil)
	if err := lockFor(t, second, 50*time.Millisecond, never(t)); err == nil {
		t.Error("no timeout")
	}
	mustUnlock(t, first)
	cluster.Await("uploads/one", 0, 0)
	mustLock(t, first, nil)
	cluster.Lose(0)
	cluster.Ready(0)
	again := lockOf(t, cluster, 0, "one")
	mustLock(t, again, nil)
	if err := first.Unlock(); !errors.Is(err, mortise.ErrLost) ||
		!strings.HasPrefix(err.Error(), `mortisetusd: unlock "uploads/one": `) || strings.Count(err.Error(), "one") != 1 {
		t.Errorf("unlock of the lost one: %v", err)
	}
	mustUnlock(t, again)
	if err := cluster.Node(0).Close(); err != nil {
		t.Fatal(err)
	}
	if err := lockFor(t, first, patience, never(t)); err == nil ||
		!strings.HasPrefix(err.Error(), `mortisetusd: lock "uploads/one": `) || strings.Count(err.Error(), "one") != 1 {
		t.Errorf("lock at a closed node: %v", err)
	}
}
