package mortise

import (
	"context"
	"errors"
	"fmt"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
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

// holdsAs waits until the group shows that k is held in a mode, or is free for "".
func holdsAs(t *testing.T, n *Node, what, mode string) {
	t.Helper()
	const within = 5 * time.Second
	got := ""
	for began := time.Now(); time.Since(began) < within; time.Sleep(time.Millisecond) {
		info, err := n.Peek(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got = ""; info.Held > 0 {
			got = info.Queue[0].Mode.String()
		}
		if got == mode {
			return
		}
	}
	t.Errorf("%s: after %v the lock is %q, want %q", what, within, got, mode)
}

// TestEachOrderOfEndsOfHandles ends two writing handles and a reading one of a lock in each order
// and in each way. The lock is exclusive until the last writer has ended, and free after the last
// handle. Each handle ends alone, and only once.
func TestEachOrderOfEndsOfHandles(t *testing.T) {
	n := alone(t, Config{})
	ways := map[string]func(l *Lock) error{
		"Unlock": func(l *Lock) error { return l.Unlock(t.Context()) }, "UnlockSoon": (*Lock).UnlockSoon,
		"Detach": func(l *Lock) error { return l.Detach(t.Context()) },
	}
	for name, end := range ways {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			what := fmt.Sprint(name, " in the order ", order)
			first, err := n.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			second, err := n.Lock(first.Context(t.Context()), "k")
			if err != nil {
				t.Fatal(err)
			}
			third, err := n.RLock(second.Context(t.Context()), "k")
			if err != nil {
				t.Fatal(err)
			}
			all, ended := []*Lock{first, second, third}, map[int]bool{}
			for i, next := range order {
				for range 2 {
					if err := end(all[next]); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				ended[next] = true
				for j, l := range all {
					if err := l.Err(); (err == nil) == ended[j] || ended[j] && !errors.Is(err, ErrUnlocked) || l.Key() != "k" ||
						l.Token() != first.Token() {
						t.Errorf("%s: after %d ends, handle %d: %v", what, i+1, j, err)
					}
				}
				mode := Exclusive.String()
				if ended[0] && ended[1] {
					mode = Shared.String()
				}
				if i == 2 {
					mode = ""
				}
				holdsAs(t, n, what, mode)
			}
			<-first.Done()
		}
	}
}

// TestAHandleEndsAtItsMaxHold lets a writing handle pass its MaxHold, which ends no other handle. A
// reader is left, so the lock becomes shared: after the LockDelay, since code may still write, or
// at the Unlock.
func TestAHandleEndsAtItsMaxHold(t *testing.T) {
	n := alone(t, Config{})
	for what, c := range map[string]struct {
		delay   time.Duration
		unlocks bool
		mode    Mode // once the MaxHold has passed
	}{"no delay": {0, false, Shared}, "a short delay": {20 * time.Millisecond, false, Shared},
		"a long delay": {time.Hour, false, Exclusive}, "a long delay, and an Unlock": {time.Hour, true, Shared}} {
		first, err := n.Acquire(t.Context(), Request{Key: "k", LockDelay: c.delay})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := n.RLock(first.Context(t.Context()), "k")
		if err != nil {
			t.Fatal(err)
		}
		limited, err := n.Acquire(first.Context(t.Context()), Request{Key: "k", MaxHold: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		under := limited.Context(t.Context())
		<-limited.Done()
		<-under.Done()
		if !errors.Is(limited.Err(), client.OverdueError{}) || !errors.Is(context.Cause(under), ErrLost) ||
			reader.Err() != nil || first.Err() != ErrUnlocked {
			t.Errorf("%s: %v, %v, %v, %v", what, limited.Err(), context.Cause(under), reader.Err(), first.Err())
		}
		if c.unlocks {
			if err := limited.Unlock(t.Context()); !errors.Is(err, client.OverdueError{}) {
				t.Errorf("%s: Unlock returns %v", what, err)
			}
		}
		holdsAs(t, n, what, c.mode.String())
		if err := reader.Unlock(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		holdsAs(t, n, what, "")
	}
	last, err := n.Acquire(t.Context(), Request{Key: "k", MaxHold: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	<-last.Done()
	if err := last.Unlock(t.Context()); !errors.Is(err, ErrLost) || !errors.Is(last.Err(), ErrLost) {
		t.Errorf("the only handle: %v, %v", err, last.Err())
	}
}

// TestEachRefusalOfAnUpgrade upgrades locks of each kind in each state, and ends the upgrade of an
// upgradable handle of an exclusive lock.
func TestEachRefusalOfAnUpgrade(t *testing.T) {
	n, ctx := alone(t, Config{}), t.Context()
	over, cancel := context.WithCancel(ctx)
	cancel()
	get := func(ctx context.Context, mode Mode) *Lock {
		t.Helper()
		l, err := n.Acquire(ctx, Request{Key: "k", Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	refused := func(what string, l *Lock, ctx context.Context, want error) {
		t.Helper()
		if up, err := l.Upgrade(ctx); !errors.Is(err, want) || up != nil {
			t.Errorf("%s: %v, %v, want %v", what, up, err, want)
		}
	}
	for _, mode := range []Mode{Exclusive, Shared, Permits(1, 2)} {
		l := get(ctx, mode)
		refused(mode.String(), l, ctx, ErrBadRequest)
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		refused(mode.String()+" that was unlocked", l, ctx, ErrUnlocked)
	}
	u := get(ctx, Upgradable)
	refused("without a context", u, nil, ErrBadRequest)
	refused("after the end of a context", u, over, context.Canceled)
	up, err := u.Upgrade(ctx)
	if err != nil || up.Token() <= u.Token() || up.Key() != "k" {
		t.Fatal(up, err)
	}
	refused("upgraded", u, ctx, ErrBadRequest)
	refused("an upgrade", up, ctx, ErrBadRequest)
	if err := up.Downgrade(ctx); !errors.Is(err, ErrBadRequest) {
		t.Errorf("Downgrade of an upgrade: %v", err)
	}
	reader, err := n.Acquire(up.Context(ctx), Request{Key: "k", Mode: Shared})
	if err != nil || reader.Token() != u.Token() {
		t.Errorf("a reader under an upgrade has the token %d of %d, %v", reader.Token(), u.Token(), err)
	}
	if err := errors.Join(reader.Unlock(ctx), up.Unlock(ctx)); err != nil || u.Err() != nil {
		t.Error(err, u.Err())
	}
	if up, err = u.Upgrade(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(u.Downgrade(ctx), u.Downgrade(ctx)); err != nil || up.Err() == nil || u.Err() != nil {
		t.Error(err, up.Err(), u.Err())
	}
	refused("made shared", u, ctx, ErrBadRequest)
	if err := u.Unlock(ctx); err != nil {
		t.Error(err)
	}
	holdsAs(t, n, "the upgradable lock", "")

	x := get(ctx, Exclusive)
	r := get(x.Context(ctx), Upgradable)
	refused("a further handle, after the end of a context", r, over, context.Canceled)
	one, err := r.Upgrade(ctx)
	if err != nil || one.Token() != x.Token() {
		t.Fatal(one, err)
	}
	refused("a further handle that is upgraded", r, ctx, ErrBadRequest)
	if err := one.Unlock(ctx); err != nil || r.Err() != nil || one.Err() != ErrUnlocked {
		t.Error(err, r.Err(), one.Err())
	}
	two, err := r.Upgrade(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Unlock(ctx), two.Err()); err != nil {
		t.Error(err)
	}
	holdsAs(t, n, "an upgradable handle is left", Exclusive.String())
	read := get(r.Context(ctx), Shared)
	if err := r.Unlock(ctx); err != nil || two.Err() != ErrUnlocked || read.Err() != nil {
		t.Error(err, two.Err(), read.Err())
	}
	holdsAs(t, n, "a reader is left", Shared.String())
	if err := read.Unlock(ctx); err != nil {
		t.Error(err)
	}
	holdsAs(t, n, "no handle is left", "")
}

// TestABeatIsOneAddition compares a Beat with a bare atomic addition, by turns. It may cost twice
// as much. A Beat by a context makes no allocation.
func TestABeatIsOneAddition(t *testing.T) {
	slow.UnderRace(t)
	n := alone(t, Config{})
	l, err := n.Acquire(t.Context(), Request{Key: "k", MaxIdle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := n.Lock(l.Context(t.Context()), "inner")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(inner.Context(l.Context(t.Context())), valueKey{}, 1)
	if allocations := testing.AllocsPerRun(100, func() { Beat(ctx) }); allocations != 0 {
		t.Errorf("a Beat by a context makes %v allocations", allocations)
	}
	const times = 1 << 20
	bare, beat := time.Hour, time.Hour
	var counter atomic.Uint64
	for range 15 {
		began := time.Now()
		for range times {
			counter.Add(1)
		}
		bare = min(bare, time.Since(began))
		began = time.Now()
		for range times {
			l.Beat()
		}
		beat = min(beat, time.Since(began))
	}
	t.Logf("an addition takes %v, a Beat %v", bare/times, beat/times)
	if beat > 3*bare && testing.CoverMode() == "" { // coverage counts with additions, too
		t.Errorf("%d additions take %v, as many Beats %v", times, bare, beat)
	}
}

type valueKey struct{} // of a value that is not a lock
