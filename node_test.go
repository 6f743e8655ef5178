package mortise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
)

// Tests of groups of several nodes are in internal/lab/e2e. The tests here start at most one node.

// alone starts a node that is a group by itself, and closes it at the end of the test.
func alone(t *testing.T, c Config) *Node {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestBadKeysAreRefused(t *testing.T) {
	n := alone(t, Config{})
	for _, key := range []string{"", string(make([]byte, 513)), "a\x00b", "a\nb", "\xff", "a\u0085b"} {
		for name, lock := range map[string]func(context.Context, string) (*Lock, error){"Lock": n.Lock,
			"TryLock": n.TryLock} {
			if _, err := lock(t.Context(), key); !errors.Is(err, ErrBadKey) {
				t.Errorf("%s(%q): %v", name, key, err)
			}
		}
	}
	l, err := n.Lock(t.Context(), strings.Repeat("x", 512))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTokenTravelsInJSONAsAString(t *testing.T) {
	const token Token = 1<<63 - 1
	b, err := json.Marshal(token)
	if err != nil || string(b) != `"9223372036854775807"` {
		t.Fatalf("marshalled to %s, %v", b, err)
	}
	var back Token
	if err := json.Unmarshal(b, &back); err != nil || back != token {
		t.Fatalf("came back as %d, %v", back, err)
	}
}

func TestHooksThatDoNotHearOfLocksCostLocksNothing(t *testing.T) {
	for _, c := range []struct {
		hooks *Hooks
		want  bool
	}{
		{nil, false},
		{&Hooks{Node: func(NodeEvent) {}, Synced: func(time.Duration, error) {}}, false},
		{&Hooks{Lost: func(LockEvent) {}}, true},
	} {
		l, err := alone(t, Config{Hooks: c.hooks}).Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.call() != nil; got != c.want {
			t.Errorf("with %+v a lock is looked after: %v", c.hooks, got)
		}
	}
}

// keeping returns a node that keeps the lock k, which is free.
func keeping(t *testing.T) *Node {
	t.Helper()
	n, ctx := alone(t, Config{}), t.Context()
	for { // a node keeps locks soon after its start
		stickyPair(t, n)
		info, err := n.Peek(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if info.Held > 0 {
			return n
		}
	}
}

func stickyPair(t *testing.T, n *Node) *Lock {
	t.Helper()
	l, err := n.LockSticky(t.Context(), "k", StickyOptions{})
	if err == nil {
		err = l.Unlock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALockThatIsKeptCostsOneAllocation(t *testing.T) {
	n := keeping(t)
	pair := func() { stickyPair(t, n) }
	got := testing.AllocsPerRun(500, pair)
	for range 20 { // it also counts what the goroutines of other tests allocate
		got = min(got, testing.AllocsPerRun(100, pair))
	}
	if got > 1 { // the Lock
		t.Errorf("a pair of Lock and Unlock allocates %v times", got)
	}
}

// A caller may keep the handle of a lock that it has unlocked, and unlock it again.
func TestAKeptHandleFreesNoOtherLock(t *testing.T) {
	n := keeping(t)
	handles := map[*Lock]Token{}
	for range 50 {
		l := stickyPair(t, n)
		if handles[l] != 0 {
			t.Fatalf("the handle with token %d is used again", handles[l])
		}
		handles[l] = l.Token()
	}
	now, err := n.LockSticky(t.Context(), "k", StickyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for l, token := range handles {
		if err := l.Unlock(t.Context()); err != nil || l.Err() != ErrUnlocked || l.Token() != token {
			t.Fatalf("an unlocked handle: Unlock %v, Err %v, token %d instead of %d", err, l.Err(), l.Token(), token)
		}
	}
	if _, err := n.LockSticky(t.Context(), "k", StickyOptions{Try: true}); !errors.Is(err, ErrHeld) || now.Err() != nil {
		t.Fatalf("a handle of an earlier call has freed the lock: Try %v, Err %v", err, now.Err())
	}
	if err := now.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A query that the leader refuses because of a limit is repeated less and less often.
func TestRefusedQueriesArePaced(t *testing.T) {
	p, last := pauses(0), time.Duration(0)
	for range 100 {
		next := p.next(fmt.Errorf("a refusal: %w", replica.ErrBusy))
		if next < last || next < 2*lookPause || next > busyPause {
			t.Errorf("%v after %v", next, last)
		}
		last = next
	}
	if last != busyPause || p.next(replica.ErrNoLead) != lookPause {
		t.Errorf("the last pause is %v, and %v without a leader", last, p.next(replica.ErrNoLead))
	}
}
