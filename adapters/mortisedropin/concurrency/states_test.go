package concurrency

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestEachMethodInEachState calls each method of a Mutex and of an Election that has a lock, has
// none, has unlocked it, has lost it, or has a session that was closed, and compares all that
// they report then.
func TestEachMethodInEachState(t *testing.T) {
	type one interface {
		Key() string
		Err() error
		Token() mortise.Token
		Context(context.Context) context.Context
	}
	kinds := map[string]struct {
		make   func(s *Session) one
		take   func(o one) error
		try    func(o one) error
		give   func(o one) error
		noLock error // of Err
		noGive error
		label  string
	}{
		"mutex": {func(s *Session) one { return NewMutex(s, "a") },
			func(o one) error { return o.(*Mutex).Lock(context.Background()) },
			func(o one) error { return o.(*Mutex).TryLock(context.Background()) },
			func(o one) error { return o.(*Mutex).Unlock(context.Background()) }, ErrLockReleased, ErrLockReleased, ""},
		"election": {func(s *Session) one { return NewElection(s, "a") },
			func(o one) error { return o.(*Election).Campaign(context.Background(), "v") },
			func(o one) error { return o.(*Election).Proclaim(context.Background(), "w") },
			func(o one) error { return o.(*Election).Resign(context.Background()) }, ErrElectionNotLeader, nil, "election"},
	}
	states := map[string]struct {
		begin    func(c *mortisetest.Cluster, s *Session)
		take     bool
		lost     bool  // Err wraps ErrLost
		session  error // of a call that needs the session; nil means that it goes on
		gives    error // of Unlock or Resign of a lock that was taken
		proclaim error // of Proclaim of a lock that was taken
	}{
		"never": {take: false},
		"held":  {take: true},
		"lost": {begin: lose, take: true, lost: true, session: ErrSessionExpired, gives: ErrSessionExpired,
			proclaim: ErrElectionNotLeader},
		"closed": {begin: func(_ *mortisetest.Cluster, s *Session) { _ = s.Close() }, take: true,
			session: ErrSessionExpired, proclaim: ErrElectionNotLeader},
		"no lock":  {begin: func(_ *mortisetest.Cluster, s *Session) { _ = s.Close() }, session: ErrSessionExpired},
		"canceled": {begin: func(_ *mortisetest.Cluster, s *Session) { s.cancel() }, take: true, session: ErrSessionExpired},
	}
	for kind, k := range kinds {
		for state, s := range states {
			for _, method := range []string{"", "take", "try", "give", "give twice", "give and take"} {
				synctest.Test(t, func(t *testing.T) {
					c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
					session := open(t, c.Node(0))
					o := k.make(session)
					what := fmt.Sprintf("%s, %s, %s", kind, state, method)
					held := s.take && s.begin == nil || state == "canceled"
					var token mortise.Token
					work := o.Context(t.Context())
					if s.take {
						check(t, k.take(o))
						token, work = o.Token(), o.Context(t.Context())
						info, err := c.Node(0).Peek(t.Context(), "a")
						if err != nil || info.Held != 1 || info.Queue[0].Token != token ||
							info.Queue[0].Labels["mortise.purpose"] != k.label {
							t.Errorf("%s: %+v, %v", what, info, err)
						}
					}
					if s.begin != nil {
						s.begin(c, session)
					}
					synctest.Wait()
					if (work.Err() == nil) != held {
						t.Errorf("%s: the context: %v", what, context.Cause(work))
					}
					has := s.take // a lock, which may be lost
					expect := func(err, want error) {
						t.Helper()
						if err != want {
							t.Errorf("%s: %v, want %v", what, err, want)
						}
					}
					give := func() {
						want := s.gives
						if !has {
							want = k.noGive
						}
						expect(k.give(o), want)
						has, held = false, false
					}
					take := func() {
						if held {
							expect(k.take(o), nil)
							return
						}
						expect(k.take(o), s.session)
						if s.session == nil {
							has, held, token = true, true, o.Token()
						}
					}
					last := o.Err()
					switch method {
					case "take":
						take()
					case "try":
						switch {
						case kind == "mutex" && held:
							expect(k.try(o), nil)
						case kind == "mutex":
							expect(k.try(o), s.session)
							if s.session == nil {
								has, held, token = true, true, o.Token()
							}
						case !has:
							expect(k.try(o), ErrElectionNotLeader)
						default:
							expect(k.try(o), s.proclaim)
						}
					case "give":
						give()
					case "give twice":
						give()
						give()
					case "give and take":
						give()
						take()
					}
					now := o.Err()
					switch {
					case held:
						expect(now, nil)
						if o.Token() != token || token == 0 || o.Context(t.Context()).Err() != nil {
							t.Errorf("%s: token %d, want %d", what, o.Token(), token)
						}
					case method == "":
						expect(now, last)
					case has && s.lost && !errors.Is(now, mortise.ErrLost), !has && now == nil:
						t.Errorf("%s: Err is %v", what, now)
					}
					if !has && (o.Token() != 0 || context.Cause(o.Context(t.Context())) != ErrLockReleased) {
						t.Errorf("%s: token %d, context %v", what, o.Token(), context.Cause(o.Context(t.Context())))
					}
					if o.Key() != "a" {
						t.Errorf("%s: the key is %s", what, o.Key())
					}
					wantHeld := 0
					if held {
						wantHeld = 1
					}
					if s.session == nil && len(session.held) != wantHeld {
						t.Errorf("%s: the session keeps %d locks, want %d", what, len(session.held), wantHeld)
					}
					check(t, session.Close())
					c.Await("a", 0, 0)
				})
			}
		}
	}
}

func lose(c *mortisetest.Cluster, s *Session) {
	c.Lose(0)
	<-s.ended
	c.Ready(0)
}

// TestEachErrorAsEtcdHasIt compares the error that code for etcd gets for each error.
func TestEachErrorAsEtcdHasIt(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {own, own}, {ErrLocked, ErrLocked}, {fmt.Errorf("so: %w: %w", ErrLocked, mortise.ErrHeld), ErrLocked},
		{fmt.Errorf("%w: %w", ErrSessionExpired, context.Canceled), ErrSessionExpired},
		{fmt.Errorf("%w: %w", ErrElectionNotLeader, mortise.ErrLost), ErrElectionNotLeader},
		{fmt.Errorf("so: %w", context.DeadlineExceeded), context.DeadlineExceeded},
		{fmt.Errorf("so: %w", context.Canceled), context.Canceled}, {mortise.ErrHeld, mortise.ErrHeld},
	} {
		if got := bare(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestTheSessionOfEachOption compares the TTL and the own lock of a session for each option, and
// what is left after Close.
func TestTheSessionOfEachOption(t *testing.T) {
	for what, c := range map[string]struct {
		options []SessionOption
		ttl     time.Duration
	}{
		"none": {nil, 2 * time.Second}, "0 s": {[]SessionOption{WithTTL(0)}, 2 * time.Second},
		"-1 s":                  {[]SessionOption{WithTTL(-1)}, 2 * time.Second},
		"1 s":                   {[]SessionOption{WithTTL(1)}, time.Second},
		"1 s, then ignored":     {[]SessionOption{WithTTL(1), WithTTL(0)}, time.Second},
		"more than a time has":  {[]SessionOption{WithTTL(1 << 40)}, 2 * time.Second},
		"with a context of one": {[]SessionOption{WithContext(context.Background()), WithTTL(1)}, time.Second},
	} {
		inBubble(t, 1, func(t *testing.T, cluster *mortisetest.Cluster) {
			s := open(t, cluster.Node(0), c.options...)
			own := func() (all []mortise.KeyInfo) {
				for info, err := range cluster.Node(0).List(t.Context(), ownKeys) {
					check(t, err)
					all = append(all, info)
				}
				return all
			}
			all := own()
			if len(all) != 1 || s.session.TTL() != c.ttl || s.Lease() != int64(all[0].Queue[0].Token) ||
				all[0].Queue[0].Labels["mortise.purpose"] != "job" || s.Done() != s.Ctx().Done() {
				t.Errorf("%s: TTL %v, %+v", what, s.session.TTL(), all)
			}
			check(t, s.Close())
			if all := own(); len(all) > 0 || s.Ctx().Err() == nil {
				t.Errorf("%s: after Close: %+v", what, all)
			}
		})
	}
}
