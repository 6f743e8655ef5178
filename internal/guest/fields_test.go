package guest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// open opens a session of a guest, which ends with the test.
func (c *town) open(ctx context.Context) (*Guest, *Session) {
	c.t.Helper()
	g := c.guest(func(*mortise.Config) {})
	s, err := g.Session(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = g.Close()
	})
	return g, s
}

// exported returns the exported fields of a struct, by name.
func exported(v any) map[string]any {
	all := map[string]any{}
	for i, s := 0, reflect.ValueOf(v); i < s.NumField(); i++ {
		if f := s.Type().Field(i); f.IsExported() {
			all[f.Name] = s.Field(i).Interface()
		}
	}
	return all
}

// TestEachFieldOfARequestIsPassedOn compares all that a guest's session is asked for, field by
// field, for requests with all fields and with none.
func TestEachFieldOfARequestIsPassedOn(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, s := c.open(ctx)
	labels := map[string]string{"l": "x"}
	text := shown.Encode("value", labels, nil)
	var last *Lock
	for _, row := range []struct {
		what string
		take func() (*Lock, error)
		key  string
		try  bool
		want client.Terms
	}{
		{"a key", func() (*Lock, error) { return s.Acquire(ctx, mortise.Request{Key: "a"}) }, "a", false,
			client.Terms{Keys: []string{}}},
		{"all fields", func() (*Lock, error) {
			return s.Acquire(ctx, mortise.Request{Key: "t/u", Tree: true, Also: []mortise.Part{{Key: "s",
				Mode: mortise.Shared}, {Key: "w/x", Tree: true}}, Try: true, MaxWaiting: 7, MaxHold: time.Hour,
				MaxIdle: time.Minute, JeopardyGrace: 2 * time.Second, LockDelay: 3*time.Second - time.Microsecond, Notice: true,
				Value: "value", Labels: labels})
		}, "s", true, client.Terms{Keys: []string{"t", "t/u", "w", "w/x"}, Modes: []lockfsm.Mode{lockfsm.ModeIS,
			lockfsm.ModeIX, lockfsm.ModeX, lockfsm.ModeIX, lockfsm.ModeX}, Most: 7, Longest: time.Hour, Idle: time.Minute,
			Grace: 2 * time.Second, Delay: 3 * time.Second, Notice: true, Value: text}},
		{"permits", func() (*Lock, error) {
			return s.Acquire(ctx, mortise.Request{Key: "p", Mode: mortise.Permits(2, 3)})
		}, "p", false, client.Terms{Keys: []string{}, Permits: 2, Of: 3}},
		{"nothing more", func() (*Lock, error) { return s.Resume(ctx, "a", last.Token(), mortise.ResumeOptions{}) },
			"a", false, client.Terms{}},
		{"resumed with all options", func() (*Lock, error) {
			return s.Resume(ctx, "a", last.Token(), mortise.ResumeOptions{MaxHold: time.Hour,
				MaxIdle: time.Minute, JeopardyGrace: 2 * time.Second, LockDelay: 3 * time.Second, Notice: true,
				Value: "value", Labels: labels})
		}, "a", false, client.Terms{Longest: time.Hour, Idle: time.Minute, Grace: 2 * time.Second, Delay: 3 * time.Second,
			Notice: true, Value: text}},
	} {
		want := row.want
		if row.key == "a" && last != nil {
			want.Resume = lockfsm.Token(last.Token())
		}
		l, err := row.take()
		if err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		r := l.hold.Request()
		if len(r.Terms.Keys)+len(want.Keys) == 0 {
			want.Keys = r.Terms.Keys
		}
		if len(r.Terms.Value)+len(want.Value) == 0 {
			want.Value = r.Terms.Value
		}
		if len(r.Terms.Modes)+len(want.Modes) == 0 {
			want.Modes = r.Terms.Modes
		}
		if got := exported(*r.Terms); r.Key != row.key || r.Try != row.try || !reflect.DeepEqual(got, exported(want)) {
			t.Errorf("%s: key %q, try %v, %+v\nwant %q, %v, %+v", row.what, r.Key, r.Try, got, row.key, row.try,
				exported(want))
		}
		if row.key == "a" {
			last = l
		}
	}
	for _, o := range []mortise.StickyOptions{{}, {Shared: true, Try: true, Notice: true}} {
		l, err := s.LockSticky(ctx, "sticky", o)
		if err != nil {
			t.Fatal(err)
		}
		g := l.hold.Grant()
		if l.Key() != "sticky" || g.Reads() != o.Shared || l.hold.Notice() != o.Notice || l.hold.Passed() == o.Shared {
			t.Errorf("%+v: %q, shared %v, notice %v", o, l.Key(), g.Reads(), l.hold.Notice())
		}
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	for what, r := range map[string]mortise.Request{"no key": {}, "twice": {Key: "a", Also: []mortise.Part{{Key: ""}}},
		"a bad key": {Key: "a\n"}, "permits and more": {Key: "a", Mode: mortise.Permits(1, 2),
			Also: []mortise.Part{{Key: "b"}}}} {
		if _, err := s.Acquire(ctx, r); !errors.Is(err, mortise.ErrBadKey) && !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWhatAGuestChangesUnderALock checks SetValue and Put: what others see then, what the lock must
// be, the limits, and that each call is a change of its own.
func TestWhatAGuestChangesUnderALock(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, s := c.open(ctx)
	take := func(r mortise.Request) *Lock {
		t.Helper()
		l, err := s.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	seen := func(key string) mortise.Hold {
		t.Helper()
		info, err := n.Peek(ctx, key)
		if err != nil || len(info.Queue) == 0 {
			t.Fatalf("%s: %+v, %v", key, info, err)
		}
		return info.Queue[0].Hold
	}
	labels := map[string]string{"l": "x"}
	room := 0 // the longest value; the labels make it exactly as long as the limit
	for len(shown.Encode(strings.Repeat("v", room+1), labels, nil)) <= lockfsm.MaxValueBytes {
		room++
	}
	labels["l"] += strings.Repeat("x", lockfsm.MaxValueBytes-len(shown.Encode(strings.Repeat("v", room), labels, nil)))
	l := take(mortise.Request{Key: "k", Mode: mortise.Upgradable, Value: "first", Labels: labels})
	for _, value := range []string{"second", "", "third", strings.Repeat("v", room)} {
		if err := l.SetValue(ctx, value); err != nil {
			t.Fatalf("%.9q: %v", value, err)
		}
		if h := seen("k"); h.Value != value || !reflect.DeepEqual(h.Labels, labels) || h.Token != l.Token() {
			t.Errorf("after %.9q: %+v", value, h)
		}
	}
	if err := l.SetValue(ctx, strings.Repeat("v", room+1)); !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("one byte more: %v", err)
	}
	up, err := l.Upgrade(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if up.Key() != "k" || up.Token() <= l.Token() {
		t.Errorf("upgraded: %q, token %d after %d", up.Key(), up.Token(), l.Token())
	}
	if err := up.SetValue(ctx, "fourth"); err != nil {
		t.Error(err)
	}
	if h := seen("k"); h.Value != "fourth" || h.Token != l.Token() {
		t.Errorf("after a call on the upgrade: %+v", h)
	}
	if _, err := l.Upgrade(ctx); !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("upgraded twice: %v", err)
	}
	if err := up.Downgrade(ctx); !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("an upgrade is downgraded: %v", err)
	}
	var revision uint64
	for _, data := range []string{"one", "two", "two", ""} {
		next, err := up.Put(ctx, "data", []byte(data), revision)
		if err != nil || data != "" && next <= revision || data == "" && next != 0 {
			t.Fatalf("%q: revision %d after %d, %v", data, next, revision, err)
		}
		got, at, err := n.Get(ctx, "data")
		if err != nil || string(got) != data || at != next {
			t.Errorf("%q: %q at %d, %v, want %d", data, got, at, err, next)
		}
		revision = next
	}
	if _, err := g.Data(ctx, nil, "data", []byte("x"), 77); !errors.Is(err, mortise.ErrConflict) {
		t.Errorf("at another revision: %v", err)
	}
	if _, err := g.Data(ctx, nil, "\n", []byte("x"), 0); !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("a bad key: %v", err)
	}
	for _, l := range []*Lock{up, l} {
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	sticky, err := s.LockSticky(ctx, "s", mortise.StickyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forced := take(mortise.Request{Key: "f"})
	if _, err := n.ForceUnlock(ctx, "f", forced.Token(), "why"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-forced.Done():
	case <-ctx.Done():
		t.Fatal("it is not told that its lock was taken")
	}
	var by *mortise.ForcedError
	if err := forced.Err(); !errors.As(err, &by) || by.Reason != "why" || by.By == "" {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		what string
		l    *Lock
		want error
	}{{"released", l, mortise.ErrUnlocked}, {"sticky", sticky, mortise.ErrBadRequest},
		{"forced", forced, mortise.ErrLost}} {
		if err := c.l.SetValue(ctx, "x"); !errors.Is(err, c.want) {
			t.Errorf("SetValue, %s: %v", c.what, err)
		}
		if _, err := c.l.Put(ctx, "data", []byte("x"), 0); !errors.Is(err, c.want) {
			t.Errorf("Put, %s: %v", c.what, err)
		}
	}
	if _, at, err := n.Get(ctx, "data"); err != nil || at != 0 {
		t.Errorf("a lock that is not held has changed data: %d, %v", at, err)
	}
	lost := take(mortise.Request{Key: "lost"})
	lost.key = "free" // as if the group had ended the hold, and the guest did not know it yet
	if err := lost.SetValue(ctx, "x"); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("SetValue without a hold: %v", err)
	}
	if at, err := lost.Put(ctx, "data", []byte("x"), 0); !errors.Is(err, mortise.ErrLost) || at != 0 {
		t.Errorf("Put without a hold: %d, %v", at, err)
	}
	upgraded := take(mortise.Request{Key: "k"})
	if _, err := upgraded.Upgrade(ctx); !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("an exclusive lock is upgraded: %v", err)
	}
}

// TestASurveyIsInTheOrderOfTheNames checks the order of the reports, and one report as a whole.
func TestASurveyIsInTheOrderOfTheNames(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	addr := n.Status().Address
	g := c.guest(func(c *mortise.Config) { c.Join = []string{"127.0.0.1:2", addr, "127.0.0.1:1"} })
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reports, errs := g.Survey(ctx)
	if len(reports) != 3 || len(errs) != 0 {
		t.Fatalf("%+v, %v", reports, errs)
	}
	for i, want := range []Report{{Addr: addr, Outcome: Answered}, {Addr: "127.0.0.1:1", Outcome: Refused},
		{Addr: "127.0.0.1:2", Outcome: Refused}} {
		r := reports[i]
		answers := i == 0
		if r.Addr != want.Addr || r.From != want.Addr || r.Outcome != want.Outcome || (r.Status != nil) != answers ||
			(r.Answer != nil) != answers || (r.Err == nil) != answers || r.Took <= 0 || r.Took > patience ||
			!answers && r.Skew != 0 || r.Skew.Abs() > time.Second {
			t.Errorf("report %d: %+v, want %+v", i, r, want)
		}
	}
	if name, err := g.Leader(ctx); err != nil || name != "n" {
		t.Errorf("the leader is %q, %v", name, err)
	}
}

// TestASessionLeavesNothing checks that frames reach the session of a guest while it is open, and
// that a guest can open another one.
func TestASessionLeavesNothing(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := c.guest(func(*mortise.Config) {})
	defer g.Close()
	for range 2 {
		s, err := g.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if g.sessions.Load() != s.client {
			t.Error("its frames go to another session")
		}
		l, err := s.Acquire(ctx, mortise.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if g.sessions.Load() != nil {
			t.Error("a closed session gets frames")
		}
	}
}
