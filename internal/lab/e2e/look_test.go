package e2e

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (f *fleet) peek(i int, key string) mortise.KeyInfo {
	f.t.Helper()
	info, err := f.nodes[i].Peek(brief(f.t), key)
	if err != nil {
		f.t.Fatalf("node %d: %v", i, err)
	}
	return info
}

func TestPeekTellsTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4) // one of the four does not vote
		l := f.acquire(0, mortise.Request{Key: "k", Value: "counts"})
		all := f.later(1, mortise.Request{Key: "k", Mode: mortise.Shared,
			Also: []mortise.Part{{Key: "l", Mode: mortise.Shared}}})
		last := f.later(2, mortise.Request{Key: "k", Mode: mortise.Permits(2, 3)})
		for i := range f.nodes {
			info := f.peek(i, "k")
			if info.Key != "k" || info.Held != 1 || info.Waiting != 2 || len(info.Queue) != 3 {
				t.Fatalf("node %d: %+v", i, info)
			}
			first, second, third := info.Queue[0], info.Queue[1], info.Queue[2]
			if first.Holder != "node-0" || first.Token != l.Token() || first.Value != "counts" ||
				first.Since.IsZero() || first.WaitsFor != -1 || first.Left <= 0 || first.Left > 10*time.Second {
				t.Errorf("node %d: %+v", i, first)
			}
			if second.Holder != "node-1" || second.Token != 0 ||
				second.Part != (mortise.Part{Key: "k", Mode: mortise.Shared}) ||
				!slices.Equal(second.Also, []mortise.Part{{Key: "l", Mode: mortise.Shared}}) ||
				second.WaitsFor != 0 || !second.Since.IsZero() {
				t.Errorf("node %d: %+v", i, second)
			}
			if third.Mode != mortise.Permits(2, 3) || third.WaitsFor != 1 {
				t.Errorf("node %d: %+v", i, third)
			}
			if info := f.peek(i, "nobody"); info.Key != "nobody" || len(info.Queue) != 0 {
				t.Errorf("node %d: %+v", i, info)
			}
		}
		unlock(t, l)
		unlock(t, comes(t, "node 1", all))
		unlock(t, comes(t, "node 2", last))
		f.nothingLeft()
	})
}

func TestListWalksAllThatBeginWithAPrefix(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		var locks []*mortise.Lock
		for i := range 350 {
			locks = append(locks, f.lock(i%3, fmt.Sprintf("%s/%d", []string{"orders", "users"}[i%2], i)))
		}
		for i, n := range f.nodes {
			seen := map[string]bool{}
			for info, err := range n.List(brief(t), "orders/") {
				if err != nil {
					t.Fatal(err)
				}
				if seen[info.Key] || !strings.HasPrefix(info.Key, "orders/") || info.Held != 1 ||
					info.Queue[0].Token == 0 {
					t.Fatalf("node %d: %+v", i, info)
				}
				seen[info.Key] = true
			}
			if len(seen) != 175 {
				t.Errorf("node %d lists %d", i, len(seen))
			}
		}
		for range f.nodes[0].List(brief(t), "") {
			break
		}
		for _, l := range locks {
			unlock(t, l)
		}
		f.nothingLeft()
	})
}

// TestCheckIsNeverOld checks that the answer of Check was true at some moment after the call began,
// even if the leader that answers has just been elected.
func TestCheckIsNeverOld(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		check := func(i int, token mortise.Token) bool {
			t.Helper()
			held, err := f.nodes[i].Check(brief(t), "k", token)
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		for range 20 {
			l := f.lock(f.follower(), "k")
			for i := range f.nodes {
				if !check(i, l.Token()) || check(i, l.Token()+1) {
					t.Errorf("node %d does not know who holds it", i)
				}
			}
			unlock(t, l)
			for i := range f.nodes {
				if check(i, l.Token()) {
					t.Errorf("node %d believes in an old token", i)
				}
			}
		}
		l := f.lock(f.follower(), "k")
		old := f.leader()
		f.isolate(old)
		if held, err := f.nodes[old].Check(brief(t), "k", l.Token()); err == nil {
			t.Errorf("a leader without a majority says %v", held)
		}
		f.rejoin(old)
		if !check(old, l.Token()) {
			t.Error("the lock is not held any more")
		}
		unlock(t, l)
		f.nothingLeft()
	})
}

func TestForceUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		ctx := l.Context(t.Context())
		next := f.later(1, mortise.Request{Key: "b"})
		if ended, err := f.nodes[2].ForceUnlock(brief(t), "a", l.Token()+1, "hangs"); ended || err != nil {
			t.Errorf("another token: %v, %v", ended, err)
		}
		if ended, err := f.nodes[2].ForceUnlock(brief(t), "a", l.Token(), "hangs"); !ended || err != nil {
			t.Errorf("%v, %v", ended, err)
		}
		after := comes(t, "the waiter", next)
		synctest.Wait()
		var forced *mortise.ForcedError
		if err := context.Cause(ctx); !errors.As(err, &forced) || forced.By != "node-2" || forced.Reason != "hangs" ||
			!errors.Is(err, mortise.ErrLost) {
			t.Errorf("the holder is told: %v", err)
		}
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		if err := after.Err(); err != nil || after.Token() <= l.Token() {
			t.Errorf("%v", err)
		}
		if ended, err := f.nodes[0].ForceUnlock(brief(t), "a", l.Token(), "hangs"); ended || err != nil {
			t.Errorf("again: %v, %v", ended, err)
		}
		unlock(t, after)
		for _, bad := range []func() (bool, error){
			func() (bool, error) { return f.nodes[0].ForceUnlock(brief(t), "a", 0, "") },
			func() (bool, error) { return f.nodes[0].ForceUnlock(brief(t), "a", 1, strings.Repeat("x", 1025)) },
		} {
			if _, err := bad(); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("%v", err)
			}
		}
		f.nothingLeft()
	})
}

// In TestAnOldEvictAnswersNoOtherCall an Evict of an earlier leader is applied late, under the
// number of a query of the present leader. Its result must not answer that query.
func TestAnOldEvictAnswersNoOtherCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		seen := map[uint64]bool{}
		for _, n := range f.nodes {
			for range 100 {
				r := n.Replica()
				one, err := r.Questions.Ask(replica.Question{Op: replica.OpPeek})
				if err != nil || seen[one.Number] || one.Number >= replica.QuestionRound ||
					lockfsm.Number(one.Number) > lockfsm.MaxNumber {
					t.Fatalf("%+v: %v", one, err)
				}
				seen[one.Number] = true
				r.Questions.Drop(one)
			}
		}
	})
}

func TestLookingEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.isolate(0)
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.nodes[0].Peek(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "no leader") {
			t.Errorf("%v", err)
		}
		f.rejoin(0)
		f.peek(0, "k")
		n := f.nodes[0]
		f.close(0)
		if _, err := n.Peek(t.Context(), "k"); !errors.Is(err, mortise.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// TestSessionsAreTold checks that no answer of the leader contains a nonce, which is a secret.
func TestSessionsAreTold(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		own := f.session(0, time.Second)
		stays := f.acquire(1, mortise.Request{Key: "k", LockDelay: time.Minute})
		if err := stays.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, n := range f.nodes {
			all, err := n.Sessions(brief(t))
			if err != nil || len(all) != f.sessions()+2 {
				t.Fatalf("node %d: %+v, %v", i, all, err)
			}
			firsts, owns := 0, 0
			for _, s := range all {
				switch {
				case s.Expired:
					if s.Name != "node-1" || s.TTL != time.Minute || s.Left <= 50*time.Second {
						t.Errorf("%+v", s)
					}
				case s.Instance == "" && s.TTL == own.TTL():
					if owns++; s.Name != "node-0" {
						t.Errorf("%+v", s)
					}
				case s.Instance == "": // one of f.seconds
				case s.TTL == 2*time.Second && s.Left > 0 && s.Left <= s.TTL && !s.Leaving:
					firsts++
				}
			}
			if firsts != 4 || owns != 1 {
				t.Errorf("%+v", all)
			}
		}
		seen, err := f.nodes[f.leader()].Query(brief(t), replica.Question{Op: replica.OpSessions})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen.Sessions {
			if s.Nonce != (lockfsm.Nonce{}) {
				t.Error("a nonce is told")
			}
		}
		unlock(t, f.acquire(2, resuming{key: "k", token: stays.Token()}))
		all, err := f.nodes[0].Sessions(brief(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Held != 0 || s.Waiting != 0 {
				t.Errorf("nothing is held, and a session says %+v", s)
			}
		}
		if err := own.Close(brief(t)); err != nil {
			t.Fatal(err)
		}
		f.nothingLeft()
	})
}

// TestANumberThatNothingHas asks for a token and a revision that are never given. Each call must
// return: the group refuses the command however often it is repeated.
func TestANumberThatNothingHas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		for _, n := range f.nodes {
			for _, number := range []uint64{1 << 63, math.MaxUint64} {
				token := mortise.Token(number)
				if held, err := n.Check(brief(t), "k", token); held || err != nil {
					t.Errorf("Check: %v, %v", held, err)
				}
				_, err := n.ForceUnlock(brief(t), "k", token, "r")
				wantIs(t, err, mortise.ErrBadRequest)
				_, err = n.Resume(brief(t), "k", token, mortise.ResumeOptions{})
				wantIs(t, err, mortise.ErrBadRequest)
				_, err = n.Put(brief(t), "k", []byte("v"), number)
				wantIs(t, err, mortise.ErrConflict)
				if ended, err := n.EndSession(brief(t), fmt.Sprint(number), "r"); ended || err != nil {
					t.Errorf("EndSession: %v, %v", ended, err)
				}
			}
		}
	})
}

// TestAQueryThatIsTooLong asks for keys and prefixes that no key can have. Each call must return,
// whether its instance leads or not: no leader ever answers such a question.
func TestAQueryThatIsTooLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		tooMuch := strings.Repeat("k", 3<<20)
		first := func(all iter.Seq2[mortise.KeyInfo, error]) error {
			for _, err := range all {
				return err
			}
			return nil
		}
		watched := func(prefix string) error {
			for _, err := range f.nodes[0].Watch(brief(t), prefix, 1) {
				return err
			}
			return nil
		}
		for _, n := range f.nodes {
			_, peeked := n.Peek(brief(t), tooMuch)
			_, _, got := n.Get(brief(t), tooMuch)
			_, checked := n.Check(brief(t), tooMuch, 1)
			_, forced := n.ForceUnlock(brief(t), tooMuch, 1, "r")
			listed := first(n.List(brief(t), tooMuch))
			for _, err := range []error{peeked, got, checked, forced, listed} {
				if err != nil && !errors.Is(err, mortise.ErrBadRequest) {
					t.Error(err)
				}
			}
			if _, err := n.Put(brief(t), tooMuch, []byte("v"), 0); !errors.Is(err, mortise.ErrBadKey) {
				t.Errorf("Put: %v", err)
			}
		}
		for _, length := range []int{513, 9 << 10, len(tooMuch)} {
			if err := watched(tooMuch[:length]); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("a watch of a prefix of %d bytes: %v", length, err)
			}
		}
	})
}
