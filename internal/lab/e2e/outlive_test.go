package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestAHoldOutlivesItsProcess passes the lock of a saga from service to service, through a crash, a
// change of leader and a Leave.
func TestAHoldOutlivesItsProcess(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		first, second := f.follower(), f.leader()
		l := f.acquire(first, mortise.Request{Key: "order/42", LockDelay: 2 * time.Minute, Value: "saga 7"})
		waiting := f.later(second, mortise.Request{Key: "order/42"})
		f.crash(first)
		time.Sleep(time.Minute)
		f.crash(second)
		time.Sleep(time.Minute) // a new leader starts the LockDelay again
		third := f.follower()
		info := f.peek(third, "order/42")
		if info.Held != 1 || !info.Queue[0].Expired || info.Queue[0].Value != "saga 7" ||
			info.Queue[0].Token != l.Token() {
			t.Fatalf("%+v", info)
		}
		again := f.acquire(third, resuming{key: "order/42", token: l.Token()})
		if again.Token() <= l.Token() || again.Err() != nil {
			t.Fatalf("token %d after %d, %v", again.Token(), l.Token(), again.Err())
		}
		if _, err := f.nodes[third].Resume(t.Context(), "order/42", l.Token(),
			mortise.ResumeOptions{}); !errors.Is(err, mortise.ErrNotHeld) {
			t.Errorf("a token that is over: %v", err)
		}
		if err := again.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, again.Err(), mortise.ErrUnlocked)
		if err := f.nodes[third].Leave(brief(t)); err != nil {
			t.Fatal(err)
		}
		f.nodes[third] = nil
		fourth := f.leader()
		last := f.acquire(fourth, resuming{key: "order/42", token: again.Token()})
		if info := f.peek(fourth, "order/42"); info.Queue[0].Value != "saga 7" || info.Queue[0].Expired {
			t.Errorf("%+v", info)
		}
		unlock(t, last)
		select {
		case <-waiting: // the node of the waiting call has crashed
		default:
		}
		f.nothingLeft()
	})
}

// TestAHoldIsHandedOn passes a hold to another instance. The old holder must get an error that
// names the new holder.
func TestAHoldIsHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		ctx := l.Context(t.Context())
		next := f.later(2, mortise.Request{Key: "b"})
		taken := f.acquire(1, resuming{"b", l.Token(), mortise.ResumeOptions{Notice: true}})
		<-ctx.Done()
		var forced *mortise.ForcedError
		if err := context.Cause(ctx); !errors.As(err, &forced) || !forced.Resumed || forced.By != "node-1" ||
			!errors.Is(err, mortise.ErrLost) {
			t.Errorf("%v", err)
		}
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		<-taken.Wanted()
		waits(t, "the request for b", next)
		unlock(t, taken)
		unlock(t, comes(t, "the request for b", next))
		for _, bad := range []any{
			resuming{"a", 0, mortise.ResumeOptions{}}, resuming{"a", 1, mortise.ResumeOptions{MaxHold: -1}},
			mortise.Request{Key: "a", LockDelay: 8 * 24 * time.Hour},
		} {
			if _, err := acquire(t.Context(), f.nodes[0], bad); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		f.nothingLeft()
	})
}

func TestDetachWithoutADelayIsUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(0, "k")
		if err := l.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		stays := f.acquire(1, mortise.Request{Key: "k", LockDelay: time.Hour})
		if err := stays.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		// This Unlock returns the result of Detach, which was called first.
		if err := stays.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.nodes[2].TryLock(t.Context(), "k"); !errors.Is(err, mortise.ErrHeld) {
			t.Fatalf("%v", err)
		}
		if ended, err := f.nodes[2].ForceUnlock(brief(t), "k", stays.Token(), "the saga is over"); !ended ||
			err != nil {
			t.Fatalf("%v, %v", ended, err)
		}
		unlock(t, f.lock(2, "k"))
		f.nothingLeft()
	})
}

func TestEachHoldStaysForItsOwnDelay(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		victim, other := f.follower(), f.leader()
		delays := map[string]time.Duration{"short": 5 * time.Second, "again": 5 * time.Second, "long": 2 * time.Minute,
			"taken up": time.Minute}
		tokens := map[string]mortise.Token{}
		for key, d := range delays {
			tokens[key] = f.acquire(victim, mortise.Request{Key: key, LockDelay: d}).Token()
		}
		f.lock(victim, "none")
		f.crash(victim)
		crashed := time.Now()
		unlock(t, f.lock(other, "none"))
		gone := time.Since(crashed) // the time until the session has expired
		kept := f.acquire(other, resuming{key: "taken up", token: tokens["taken up"]})
		for _, key := range []string{"short", "again", "long"} {
			l, err := f.nodes[other].Lock(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(crashed) - gone; waited < delays[key]-100*time.Millisecond ||
				waited > delays[key]+2*time.Second {
				t.Errorf("%s was free after %v, want %v", key, waited, delays[key])
			}
			unlock(t, l)
		}
		wantIs(t, kept.Err(), nil)
		unlock(t, kept)
		f.nothingLeft()
	})
}
