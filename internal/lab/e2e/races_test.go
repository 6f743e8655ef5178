package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// oneWay is the latency of every byte in these tests. A lock on a follower takes four times oneWay.
// A lock on the leader takes twice oneWay.
const oneWay = time.Millisecond

// step is the distance between two moments that a test tries. Protocol steps happen at whole
// milliseconds, where the scheduling of goroutines decides the order. All other moments are between
// two protocol steps.
func step() time.Duration {
	if underRace {
		return 500 * time.Microsecond
	}
	return 125 * time.Microsecond
}

// mustBeFree fails the test unless another node is granted the key without delay.
func (f *fleet) mustBeFree(i int, key, why string) {
	f.t.Helper()
	time.Sleep(4 * oneWay) // cancelling a request takes as long as the request
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*oneWay)
	defer cancel()
	l, err := f.nodes[i].Lock(ctx, key)
	if err != nil {
		f.t.Fatalf("%s: the caller was told that it holds nothing, and now: %v", why, err)
	}
	unlock(f.t, l)
}

// TestGivingUpAtEveryStep cancels a Lock, a TryLock and a Do at every step of a request. An error
// must mean that the lock is not held, now or later.
func TestGivingUpAtEveryStep(t *testing.T) {
	slow.UnderRace(t)
	for _, where := range []string{"leader", "follower", "member"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFour(t)
				f.net.SetLatency(oneWay)
				leader := f.leader()
				i := map[string]int{"leader": leader, "follower": (leader + 1) % 3, "member": 3}[where]
				other := (leader + 2) % 3
				granted, gaveUp := 0, 0
				for after := time.Duration(0); after <= 6*oneWay; after += step() {
					for what, acquire := range map[string]func(context.Context, string) error{
						"Lock": func(ctx context.Context, key string) error {
							return lockOnce(t, ctx, f.nodes[i].Lock,
								key)
						},
						"Try": func(ctx context.Context, key string) error {
							return lockOnce(t, ctx,
								f.nodes[i].TryLock, key)
						},
						"Do": func(ctx context.Context, key string) error {
							return f.nodes[i].Do(ctx, key, func(context.Context, mortise.Token) error { return nil })
						},
					} {
						key := fmt.Sprint(what, " ", after)
						ctx, cancel := context.WithTimeout(t.Context(), after)
						began := time.Now()
						err := acquire(ctx, key)
						cancel()
						if took := time.Since(began); took > after && what != "Do" && err != nil {
							t.Errorf("%s returned %v after its context had ended", key, took-after)
						}
						if err == nil {
							granted++
						} else {
							gaveUp++
							wantIs(t, err, context.DeadlineExceeded)
						}
						f.mustBeFree(other, key, key)
					}
				}
				t.Logf("%d granted, %d gave up", granted, gaveUp)
				if granted == 0 || gaveUp == 0 {
					t.Error("the steps must have both to mean anything")
				}
				f.nothingLeft()
			})
		})
	}
}

func lockOnce(t *testing.T, ctx context.Context, lock func(context.Context, string) (*mortise.Lock, error),
	key string) error {
	l, err := lock(ctx, key)
	if err != nil {
		return err
	}
	if err := l.Err(); err != nil {
		t.Errorf("%s was returned, and: %v", key, err)
	}
	unlock(t, l)
	return nil
}

// TestGivingUpWhileTheGrantIsOnItsWay cancels a waiter at every moment around its grant. The next
// waiter must be granted the lock without delay.
func TestGivingUpWhileTheGrantIsOnItsWay(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		f.net.SetLatency(oneWay)
		leader := f.leader()
		holder, next := (leader+1)%3, (leader+2)%3
		granted, gaveUp := 0, 0
		for after := time.Duration(0); after <= 6*oneWay; after += step() {
			key := fmt.Sprint(after)
			held := f.lock(holder, key)
			ctx, giveUp := context.WithCancel(t.Context())
			waiter := make(chan error, 1)
			go func() { waiter <- lockOnce(t, ctx, f.nodes[3].Lock, key) }()
			time.Sleep(10 * oneWay) // the request is in the queue
			behind := f.lockLater(next, key)
			time.AfterFunc(after, giveUp)
			began := time.Now()
			unlock(t, held)
			l := <-behind
			if took := time.Since(began); took > 20*oneWay {
				t.Errorf("given up %v after the Unlock: the next one waited for %v", after, took)
			}
			if <-waiter == nil {
				granted++
			} else {
				gaveUp++
			}
			unlock(t, l)
		}
		t.Logf("%d granted, %d gave up", granted, gaveUp)
		if granted == 0 || gaveUp == 0 {
			t.Error("the steps must have both to mean anything")
		}
		f.nothingLeft()
	})
}

func TestGivingUpWhileTheLeaderIsLost(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		f.net.SetLatency(oneWay)
		for cutAt := time.Duration(0); cutAt <= 4*oneWay; cutAt += oneWay / 2 {
			leader := f.leader()
			time.AfterFunc(cutAt, func() { f.isolate(leader) })
			ctx, cancel := context.WithTimeout(t.Context(), cutAt+oneWay+step())
			err := lockOnce(t, ctx, f.nodes[3].Lock, "k")
			cancel()
			_ = err // both results are correct; mustBeFree checks that the lock is free
			time.Sleep(cutAt + oneWay)
			unlock(t, f.lock((leader+1)%3, "k"))
			f.rejoin(leader)
			f.ready()
		}
		f.nothingLeft()
	})
}

// TestUnlockAgainstLoss cuts a holder off and unlocks at moments around its deadline, in several
// goroutines. All calls must return the same result.
func TestUnlockAgainstLoss(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		lost, released := 0, 0
		// The leader waits 40 ms longer than the holder. This is TTL/50.
		for turn, early := range []time.Duration{400 * time.Millisecond, 50 * time.Millisecond, time.Millisecond, 1,
			0, -1, -time.Millisecond, -20 * time.Millisecond} {
			leader := f.leader()
			i, key := (leader+1)%3, fmt.Sprint(turn)
			held := f.lock(i, key)
			f.isolate(i)
			granted := f.lockLater((leader+2)%3, key)
			time.Sleep(f.nodes[i].Status().LeaseFor - early)
			errs := make([]error, 3)
			var calls sync.WaitGroup
			for c := range errs {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					defer cancel()
					errs[c] = held.Unlock(ctx)
					if held.Err() == nil {
						t.Error("after Unlock the handle still holds")
					}
				})
			}
			calls.Wait()
			for _, err := range errs {
				switch {
				case errors.Is(err, mortise.ErrLost) && errors.Is(errs[0], mortise.ErrLost):
					lost++
				case errors.Is(err, context.DeadlineExceeded) && errors.Is(errs[0], context.DeadlineExceeded):
					released++
				default:
					t.Errorf("%v before the deadline: %v", early, errs)
				}
			}
			select {
			case <-granted:
				t.Fatalf("%v before the deadline: another was granted the lock", early)
			default:
			}
			f.rejoin(i)
			unlock(t, <-granted)
			f.ready()
		}
		if lost == 0 || released == 0 {
			t.Errorf("%d lost, %d released: there must be both", lost, released)
		}
		f.nothingLeft()
	})
}

// TestCloseAgainstEverything calls every method from many goroutines while the node closes or
// leaves. All calls must return soon, with an error or with a lock that has ended.
func TestCloseAgainstEverything(t *testing.T) {
	slow.UnderRace(t)
	for _, how := range []string{"Close", "Leave", "both"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				for after := time.Duration(0); after < 8*oneWay; after += 9 * step() {
					f := startFleet(t, 3)
					f.net.SetLatency(oneWay)
					n := f.nodes[f.follower()]
					var calls sync.WaitGroup
					for c := range 40 {
						calls.Go(func() { f.everything(n, c) })
					}
					time.Sleep(after)
					began := time.Now()
					if how != "Leave" {
						calls.Go(func() { _ = n.Close() })
					}
					if how != "Close" {
						calls.Go(func() { _ = n.Leave(t.Context()) })
					}
					calls.Wait()
					if took := time.Since(began); took > 15*time.Second {
						t.Errorf("%v after the start the last call returned after %v", after, took)
					}
					wantIs(t, n.Err(), mortise.ErrClosed)
					synctest.Wait()
					for i := range f.nodes {
						f.close(i)
					}
				}
			})
		})
	}
}
