package mortise

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// TestWhatALockCovers makes requests of every kind under the context of a lock of every kind, which
// was requested by this holder, or taken over from another by each of its keys. The terms of a
// resumed lock are those of the hold and not of the request that resumes it. Permits never cover a
// request, because other requests may hold permits of the same key.
func TestWhatALockCovers(t *testing.T) {
	n := alone(t, Config{})
	downgraded := Request{Key: "k", Notice: true} // the mark of this case
	held := map[string]Request{
		"exclusive":  {Key: "k"},
		"shared":     {Key: "k", Mode: Shared},
		"downgraded": downgraded,
		"a permit":   {Key: "k", Mode: Permits(1, 3)},
		"permits":    {Key: "k", Mode: Permits(3, 3)},
		"two keys":   {Key: "k", Also: []Part{{Key: "l"}}},
		"root":       {Key: "k", Tree: true},
		"path":       {Key: "k/7", Tree: true},
		"read path":  {Key: "k/7", Tree: true, Mode: Shared},
		"upgradable": {Key: "k", Mode: Upgradable},
	}
	asked := map[string]Request{
		"exclusive":            {Key: "k"},
		"shared":               {Key: "k", Mode: Shared},
		"a permit":             {Key: "k", Mode: Permits(1, 3)},
		"one of the keys":      {Key: "k"},
		"the other key":        {Key: "l"},
		"both keys":            {Key: "k", Also: []Part{{Key: "l"}}},
		"a key of no lock":     {Key: "m"},
		"a key beside it":      {Key: "k", Also: []Part{{Key: "m"}}},
		"a MaxHold of its own": {Key: "k", MaxHold: time.Hour},
		"upgradable":           {Key: "k", Mode: Upgradable},
		"root":                 {Key: "k", Tree: true},
		"path":                 {Key: "k/7", Tree: true},
		"read path":            {Key: "k/7", Tree: true, Mode: Shared},
		"path below":           {Key: "k/7/o", Tree: true},
		"path beside":          {Key: "k/8", Tree: true},
	}
	enters := map[string][]string{
		"exclusive": {"exclusive", "shared", "one of the keys", "a MaxHold of its own", "upgradable", "root", "path",
			"read path", "path below", "path beside"},
		"shared":     {"shared"},
		"downgraded": {"shared"},
		"two keys": {"exclusive", "shared", "one of the keys", "the other key", "both keys", "a MaxHold of its own",
			"upgradable", "root", "path", "read path", "path below", "path beside"},
		"root": {"exclusive", "shared", "one of the keys", "a MaxHold of its own", "upgradable", "root", "path",
			"read path", "path below", "path beside"},
		"path":       {"shared", "path", "read path", "path below"},
		"read path":  {"shared", "read path"},
		"upgradable": {"shared", "upgradable", "read path"},
	}
	for have, first := range held {
		for _, by := range append([]string{""}, keysOf(&first)...) {
			if by != "" && first.Mode == Upgradable {
				continue // it cannot be resumed
			}
			for want, second := range asked {
				l := heldBy(t, n, first, by)
				second.Try = true
				again, err := n.Acquire(l.Context(t.Context()), second)
				if entered := err == nil && again.Token() == l.Token(); entered != slices.Contains(enters[have], want) {
					t.Errorf("under %s, resumed by %q, %s: entered again: %v, %v", have, by, want, entered, err)
				}
				if err == nil {
					err = again.Unlock(t.Context())
				} else {
					err = nil
				}
				if err := errors.Join(err, l.Unlock(t.Context())); err != nil {
					t.Errorf("under %s, resumed by %q, %s: %v", have, by, want, err)
				}
			}
		}
	}
}

// keysOf returns the keys that r locks.
func keysOf(r *Request) []string {
	var s client.Request
	(&demand{Request: *r}).ask(&s, nil)
	if s.Terms == nil {
		return []string{s.Key}
	}
	return append([]string{s.Key}, s.Terms.Keys...)
}

// heldBy acquires r. If by is not empty, another session does so, and the hold is resumed by this
// key. A lock with Notice is made shared before.
func heldBy(t *testing.T, n *Node, r Request, by string) *Lock {
	t.Helper()
	lowers := r.Notice
	if r.Notice = false; by != "" {
		r.LockDelay = time.Minute
	}
	l, err := n.Acquire(t.Context(), r)
	if err == nil && lowers {
		err = l.Downgrade(t.Context())
	}
	if err != nil {
		t.Fatal(r, err)
	}
	if by == "" {
		return l
	}
	if err := l.Detach(t.Context()); err != nil {
		t.Fatal(r, err)
	}
	again, err := n.Resume(t.Context(), by, l.Token(), ResumeOptions{})
	if err != nil {
		t.Fatal(r, err)
	}
	if again.Key() != by {
		t.Errorf("%+v, resumed by %q, has the key %q", r, by, again.Key())
	}
	return again
}

// TestNoWriterEntersADowngrade asks for an exclusive lock while a call of Downgrade waits for the
// group, and before it asks the group.
func TestNoWriterEntersADowngrade(t *testing.T) {
	n := alone(t, Config{})
	l, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if to, err := l.lower(); err != nil || to == nil {
		t.Fatal(to, err)
	}
	var deadlock *DeadlockError
	if w, err := n.Lock(l.Context(t.Context()), "k"); !errors.As(err, &deadlock) {
		t.Errorf("a writer enters a lock that is being made shared: %v, %v", w, err)
	}
	r, err := n.RLock(l.Context(t.Context()), "k")
	if err != nil || r.Token() != l.Token() {
		t.Fatal(r, err)
	}
	if err := errors.Join(r.Unlock(t.Context()), l.Downgrade(t.Context()), l.Unlock(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestAResumedHoldKeepsItsTerms checks what else a holder reads from its lock: the labels after
// SetValue, the LockDelay and the Value of an inner request, and why it cannot be made shared.
func TestAResumedHoldKeepsItsTerms(t *testing.T) {
	n := alone(t, Config{})
	labels := map[string]string{"job": "nightly"}
	l := heldBy(t, n, Request{Key: "t/7", Tree: true, Value: "v", Labels: labels}, "t")
	under := l.Context(t.Context())
	same := Request{Key: "t/7", Tree: true, LockDelay: time.Minute, Value: "v", Labels: labels}
	again, err := n.Acquire(under, same)
	if err != nil || again.Token() != l.Token() {
		t.Errorf("with the terms of the hold: %v, %v", again, err)
	}
	if err := again.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	var entered *EnteredError
	if _, err := n.Acquire(under, Request{Key: "t/7", Tree: true, LockDelay: time.Hour}); !errors.As(err, &entered) ||
		entered.Field != "LockDelay" || entered.key != "t" {
		t.Errorf("with a longer LockDelay: %v", err)
	}
	if err := l.SetValue(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	info, err := n.Peek(t.Context(), "t/7")
	if err != nil || len(info.Queue) != 1 || info.Queue[0].Value != "w" || !maps.Equal(info.Queue[0].Labels, labels) {
		t.Errorf("after SetValue: %+v, %v", info, err)
	}
	if err := l.Downgrade(t.Context()); err != nil {
		t.Errorf("Downgrade: %v", err)
	}
	if w, err := n.Acquire(t.Context(), Request{Key: "t/7/x", Tree: true, Try: true}); !errors.Is(err, ErrHeld) {
		t.Errorf("a writer below a node that was made shared: %v, %v", w, err)
	}
	if r, err := n.Acquire(t.Context(), Request{Key: "t/7/x", Mode: Shared, Tree: true, Try: true}); err != nil {
		t.Errorf("a reader below a node that was made shared: %v, %v", r, err)
	}
	s := heldBy(t, n, Request{Key: "s", Mode: Permits(2, 3)}, "s")
	if err := s.Downgrade(t.Context()); !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), "semaphore") {
		t.Errorf("Downgrade of permits: %v", err)
	}
	w := heldBy(t, n, Request{Key: "a", Also: []Part{{Key: "b"}}}, "b")
	if err := w.Downgrade(t.Context()); err != nil {
		t.Errorf("Downgrade of two keys: %v", err)
	}
	if r := heldBy(t, n, Request{Key: "r", Mode: Shared}, "r"); !r.handle.reader || r.Downgrade(t.Context()) != nil {
		t.Error("a resumed reader counts as a writer")
	}
}
