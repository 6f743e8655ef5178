package mortisevault

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

// A server that has given up holds nothing later. Each error is one sentence, which names the
// operation and the key once.
func TestAServerThatHasGivenUp(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, second := lockOf(t, cluster, 0, "first", Options{}), lockOf(t, cluster, 1, "second", Options{})
	mustLock(t, first)
	stop := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	if lost, err := lockIn(t, second, stop); lost != nil || err != nil {
		t.Errorf("Lock: %v, %v, want nil, nil", lost, err)
	}
	_, again := lockIn(t, first, nil)
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
	cluster.Await("vault/core/lock", 0, 0)
	wantValue(t, second, false, "")
	if err := cluster.Node(0).Close(); err != nil {
		t.Fatal(err)
	}
	_, closed := lockIn(t, first, nil)
	_, _, value := first.Value()
	for want, err := range map[string]error{
		`mortisevault: "vault/core/lock" is already locked by this lock`: again,
		`mortisevault: lock "vault/core/lock": `:                         closed,
		`mortisevault: value of "vault/core/lock": `:                     value,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "core/lock") != 1 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
