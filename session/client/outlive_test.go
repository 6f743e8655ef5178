package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func (w *world) take(c nodeid.ID, terms Terms) (*Hold, error) {
	w.t.Helper()
	return w.ask(c, Request{Key: "x", Terms: &terms})
}

func (w *world) ask(c nodeid.ID, r Request) (*Hold, error) {
	h := &Hold{}
	return h, w.clients[c].AcquireInto(w.t.Context(), h, &r)
}

func (w *world) x() lockfsm.LockInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	info, _ := w.machine.Inspect("x", 1)
	return info
}

// TestDetachedHoldStaysAndIsTakenUp checks that a detached hold remains in the group for its delay,
// by the leader's clock.
func TestDetachedHoldStaysAndIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		first, err := w.take(nodeidtest.ID(100), Terms{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Detach(t.Context()); err != nil || first.Err() != ErrReleased {
			t.Fatalf("%v, %v", err, first.Err())
		}
		time.Sleep(59 * time.Minute)
		second, err := w.take(nodeidtest.ID(101), Terms{Resume: first.Token()})
		if err != nil || second.Token() <= first.Token() || second.Err() != nil {
			t.Fatalf("%v, tokens %d and %d", err, first.Token(), second.Token())
		}
		if _, err := w.take(nodeidtest.ID(100), Terms{Resume: first.Token()}); !errors.Is(err, ErrNotHeld) {
			t.Errorf("with a token that is over: %v", err)
		}
		time.Sleep(2 * time.Hour) // longer than the delay of the first Detach
		if second.Err() != nil {
			t.Fatal(second.Err())
		}
		if err := second.Detach(t.Context()); err != nil { // the hold has the delay of the first request
			t.Fatal(err)
		}
		start := time.Now()
		w.lock(nodeidtest.ID(100), "x").Release(t.Context())
		if waited := time.Since(start); waited < time.Hour || waited > time.Hour+time.Second {
			t.Errorf("free after %v, want an hour", waited)
		}
		w.empty()
		if s := w.keepers[nodeidtest.ID(1)].Status(); s.Expiring != 0 || s.Sessions != 2 {
			t.Errorf("the keeper is left with %+v", s)
		}
	})
}

func TestLostHoldStays(t *testing.T) {
	for name, livesOn := range map[string]bool{"session over": false, "session lives on": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nodeidtest.ID(1), nodeidtest.ID(2))
				defer w.close()
				w.elect(nodeidtest.ID(1))
				first, err := w.take(nodeidtest.ID(100), Terms{Delay: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				w.isolate(nodeidtest.ID(100), true)
				w.keepers[nodeidtest.ID(1)].Down(nodeidtest.ID(100))
				w.clients[nodeidtest.ID(100)].Down(nodeidtest.ID(1))
				if time.Sleep(worldTTL / 2); livesOn {
					w.elect(nodeidtest.ID(2)) // the new leader gives every session a full TTL
				}
				<-first.Done()
				if !livesOn {
					time.Sleep(worldTTL)
				}
				w.isolate(nodeidtest.ID(100), false)
				if err := w.clients[nodeidtest.ID(100)].WaitAttached(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if info := w.x(); info.Held != 1 || !info.Queue[0].Gone || info.Queue[0].Token != first.Token() {
					t.Fatalf("what is left is %+v", info)
				}
				second, err := w.take(nodeidtest.ID(100), Terms{Resume: first.Token()})
				if err != nil {
					t.Fatal(err)
				}
				if err := second.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.empty()
			})
		})
	}
}

func TestHoldIsTakenFromALiveHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		first := w.lock(nodeidtest.ID(100), "x")
		second, err := w.take(nodeidtest.ID(101), Terms{Resume: first.Token()})
		if err != nil {
			t.Fatal(err)
		}
		<-first.Done()
		var taken *TakenError
		if err := first.Err(); !errors.As(err, &taken) || !errors.Is(err, ErrLost) ||
			string(taken.Record) != string([]byte{101}) {
			t.Errorf("%v", err)
		}
		if err := first.Release(t.Context()); !errors.Is(err, ErrLost) || second.Err() != nil {
			t.Errorf("%v, %v", err, second.Err())
		}
		second.Release(t.Context())
		w.empty()
	})
}

// TestResumeGivenUp checks that the cancel of a request to resume a hold does not end the hold.
func TestResumeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		first, err := w.take(nodeidtest.ID(100), Terms{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // both clients are attached
		ctx, cancel := context.WithCancel(t.Context())
		w.mu.Lock()
		w.onReply = cancel // ends the context before the answer arrives
		w.mu.Unlock()
		h := &Hold{}
		if err := w.clients[nodeidtest.ID(101)].AcquireInto(ctx, h,
			&Request{Key: "x", Terms: &Terms{Resume: first.Token()}}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		synctest.Wait()
		if info := w.x(); info.Held != 1 || !info.Queue[0].Gone || info.Queue[0].Token <= first.Token() {
			t.Errorf("what is left is %+v", info)
		}
	})
}

// TestDetachSurvivesItsAttachment checks that the next Attach names a hold whose Detach is not
// confirmed.
func TestDetachSurvivesItsAttachment(t *testing.T) {
	b := newBench(t)
	b.attach()
	hold := func() *Request {
		r := &Request{Key: "k", Terms: &Terms{Delay: time.Minute}}
		b.core.Acquire(b.now, r)
		b.turn()
		n := b.commands[0].Number
		b.reply(nodeidtest.ID(1), b.state(n, lockfsm.Granted, lockfsm.Token(1000+n)))
		b.turn()
		return r
	}
	one, two, three := hold(), hold(), hold()
	b.core.Detach(b.now, one, "")
	b.core.Detach(b.now, two, "")
	b.want("1: detach 1, detach 2")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.core.Detach(b.now, three, "") // there is no attachment at this time
	b.want("2: attach 2 live 1-3 next 4, renew 2")
	b.reply(nodeidtest.ID(2), b.state(2, lockfsm.Granted, 1002), b.state(3, lockfsm.Granted, 1003),
		b.attached(lockfsm.Done), b.renewed())
	b.want("2: detach 2, detach 3")
	b.outcome(one, OutcomeReleased, nil)
	b.reply(nodeidtest.ID(2), b.freed(2), session.Reply{Kind: session.ReplyFreed, Session: 100, Epoch: 2, Number: 3,
		Code: lockfsm.TooManySessions})
	b.turn()
	if len(b.outcomes) != 2 || b.outcomes[0].Err != nil || !errors.Is(b.outcomes[1].Err, ErrNoRoom) {
		t.Errorf("%+v", b.outcomes)
	}
	b.empty()
}

// TestShortResumeIsTriedAgain resumes a hold shortly before the end of the lease.
func TestShortResumeIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.attach()
	r := &Request{Key: "k", Terms: &Terms{Resume: 500}}
	b.core.Acquire(b.now, r)
	b.turn()
	if b.commands[0].Token != 500 {
		t.Fatalf("%+v", b.commands)
	}
	b.advance(benchTTL - benchTTL/50 - 2*time.Millisecond)
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 600))
	b.core.Flush(b.now)
	b.core.Down(b.now, nodeidtest.ID(1))
	b.turn()
	b.reply(nodeidtest.ID(2), b.state(1, lockfsm.Granted, 600), b.attached(lockfsm.Done), b.renewed())
	b.turn()
	if len(b.commands) < 2 || b.commands[0].Kind != lockfsm.Detach || b.commands[1].Token != 600 {
		t.Errorf("%+v", b.commands)
	}
}
