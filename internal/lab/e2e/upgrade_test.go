package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// upgradeLater begins an upgrade, and returns a channel for the upgraded lock.
func upgradeLater(t *testing.T, l *mortise.Lock) <-chan *mortise.Lock {
	granted := make(chan *mortise.Lock, 1)
	go func() {
		up, err := l.Upgrade(t.Context())
		if err != nil {
			t.Errorf("Upgrade: %v", err)
		}
		granted <- up
	}()
	return granted
}

func upgrade(t *testing.T, l *mortise.Lock) *mortise.Lock {
	t.Helper()
	up, err := l.Upgrade(t.Context())
	if err != nil {
		t.Fatalf("Upgrade: %v", err)
	}
	return up
}

func upgradable(key string) mortise.Request {
	return mortise.Request{Key: key, Mode: mortise.Upgradable}
}

func TestUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		one := f.acquire(0, mortise.Request{Key: "k", Mode: mortise.Shared})
		l := f.acquire(1, upgradable("k"))
		two := f.acquire(2, mortise.Request{Key: "k", Mode: mortise.Shared})
		other := f.later(0, upgradable("k"))
		waits(t, "a second upgradable lock", other)
		pending := upgradeLater(t, l)
		waits(t, "the upgrade beside two readers", pending)
		late := f.later(2, mortise.Request{Key: "k", Mode: mortise.Shared})
		unlock(t, one)
		waits(t, "the upgrade beside one reader", pending)
		waits(t, "a reader behind the upgrade", late)
		info, err := f.nodes[2].Peek(t.Context(), "k")
		if err != nil || len(info.Queue) != 5 || info.Queue[0].Mode != mortise.Upgradable || info.Queue[0].Tree ||
			info.Queue[1].Mode != mortise.Shared || info.Queue[2].Mode != mortise.Exclusive || info.Queue[2].WaitsFor != 1 ||
			info.Queue[3].WaitsFor != 2 {
			t.Errorf("Peek: %+v, %v", info, err)
		}
		unlock(t, two)
		up := comes(t, "the upgrade", pending)
		if up.Token() <= two.Token() || up.Err() != nil || l.Err() != nil || up.Key() != "k" {
			t.Errorf("token %d after %d; %v, %v", up.Token(), two.Token(), up.Err(), l.Err())
		}
		for _, token := range []mortise.Token{l.Token(), up.Token()} {
			if held, err := f.nodes[0].Check(t.Context(), "k", token); err != nil || !held {
				t.Errorf("Check of token %d: %v, %v", token, held, err)
			}
		}
		unlock(t, up)
		waits(t, "a second upgradable lock after the step back", other)
		unlock(t, l)
		unlock(t, comes(t, "the second upgradable lock", other))
		unlock(t, comes(t, "the reader behind it", late))
		f.nothingLeft()
	})
}

// TestTheUnlockOfAnUpgradableLockEndsItsUpgrade unlocks in the wrong order.
func TestTheUnlockOfAnUpgradableLockEndsItsUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(1, upgradable("k"))
		up := upgrade(t, l)
		ctx := up.Context(t.Context())
		next := f.later(2, mortise.Request{Key: "k"})
		unlock(t, l)
		unlock(t, comes(t, "the next writer", next))
		if err := up.Err(); !errors.Is(err, mortise.ErrLost) || !errors.Is(context.Cause(ctx), mortise.ErrLost) {
			t.Errorf("the upgrade: %v, %v", err, context.Cause(ctx))
		}
		if err := up.Unlock(t.Context()); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Unlock of the upgrade: %v", err)
		}
		if _, err := l.Upgrade(t.Context()); !errors.Is(err, mortise.ErrUnlocked) {
			t.Errorf("Upgrade after Unlock: %v", err)
		}
		f.nothingLeft()
	})
}

// TestForceUnlockAndUpgrades ends a hold and, before, only its upgrade.
func TestForceUnlockAndUpgrades(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(1, upgradable("k"))
		up := upgrade(t, l)
		if _, err := f.nodes[0].ForceUnlock(t.Context(), "k", up.Token(), "hangs"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := up.Err(); !errors.As(err, new(*mortise.ForcedError)) || l.Err() != nil {
			t.Errorf("the upgrade: %v, the lock: %v", err, l.Err())
		}
		_ = up.Unlock(t.Context())
		up = upgrade(t, l)
		if _, err := f.nodes[0].ForceUnlock(t.Context(), "k", l.Token(), "hangs"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, one := range []*mortise.Lock{l, up} {
			if err := one.Err(); !errors.As(err, new(*mortise.ForcedError)) {
				t.Errorf("after a forced end: %v", err)
			}
			_ = one.Unlock(t.Context())
		}
		f.nothingLeft()
	})
}

// TestUpgradesThatAreRefused checks that the lock is as before after each refusal.
func TestUpgradesThatAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for name, r := range map[string]any{
			"shared": mortise.Request{Key: "a", Mode: mortise.Shared}, "exclusive": mortise.Request{Key: "a"},
			"permits": mortise.Request{Key: "a", Mode: mortise.Permits(1, 2)},
			"several": mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}},
			"path":    mortise.Request{Key: "a/b", Tree: true}, "sticky": stickily{key: "a"},
		} {
			l := f.acquire(1, r)
			if _, err := l.Upgrade(t.Context()); !errors.Is(err, mortise.ErrBadRequest) || l.Err() != nil {
				t.Errorf("%s: %v, %v", name, err, l.Err())
			}
			unlock(t, l)
		}
		l := f.acquire(1, upgradable("k"))
		_, err := f.nodes[1].Lock(l.Context(t.Context()), "k")
		if !errors.As(err, new(*mortise.DeadlockError)) || !strings.Contains(err.Error(), "Lock.Upgrade") {
			t.Errorf("exclusive: %v", err)
		}
		up := upgrade(t, l)
		for name, err := range map[string]error{
			"a second upgrade": func() error { _, err := l.Upgrade(t.Context()); return err }(),
			"an upgrade again": func() error { _, err := up.Upgrade(t.Context()); return err }(),
			"Downgrade":        up.Downgrade(t.Context()),
		} {
			if !errors.Is(err, mortise.ErrBadRequest) || up.Err() != nil {
				t.Errorf("%s: %v, then %v", name, err, up.Err())
			}
		}
		if err := up.SetValue(t.Context(), "v"); err != nil {
			t.Errorf("SetValue: %v", err)
		}
		if s := f.peek(0, "k").Queue[0]; s.Value != "v" || s.Token != l.Token() {
			t.Errorf("SetValue of an upgrade: %+v", s)
		}
		again, err := f.nodes[1].Lock(up.Context(t.Context()), "k")
		if err != nil || again.Token() != up.Token() {
			t.Fatalf("entered again under the upgrade: %v", err)
		}
		unlock(t, again)
		unlock(t, up)
		reader, err := f.nodes[1].RLock(l.Context(t.Context()), "k")
		if err != nil || reader.Token() != l.Token() {
			t.Fatalf("entered again under the upgradable lock: %v", err)
		}
		same, err := f.nodes[1].Acquire(l.Context(t.Context()), upgradable("k"))
		if err != nil || same.Token() != l.Token() {
			t.Fatalf("entered again as upgradable: %v", err)
		}
		unlock(t, upgrade(t, same))
		for _, one := range []*mortise.Lock{same, reader, l} {
			unlock(t, one)
		}
		f.nothingLeft()
	})
}

// TestTwoUpgradersDoNotDeadlock lets each of two callers read, and then upgrade. The second one
// waits at the beginning, not in the middle.
func TestTwoUpgradersDoNotDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		a := f.acquire(0, upgradable("k"))
		second := f.later(1, upgradable("k"))
		waits(t, "the second", second)
		unlock(t, upgrade(t, a))
		unlock(t, a)
		b := comes(t, "the second", second)
		unlock(t, upgrade(t, b))
		unlock(t, b)
		f.nothingLeft()
	})
}

// TestUpgradeInACircle upgrades while a reader waits for a lock of the same caller.
func TestUpgradeInACircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		x := f.acquire(0, mortise.Request{Key: "x"})
		l, err := f.nodes[0].Acquire(x.Context(t.Context()), upgradable("k"))
		if err != nil {
			t.Fatal(err)
		}
		reader := f.acquire(1, mortise.Request{Key: "k", Mode: mortise.Shared})
		blocked := make(chan *mortise.Lock, 1)
		go func() {
			waiting, _ := f.nodes[1].Lock(reader.Context(t.Context()), "x")
			blocked <- waiting
		}()
		waits(t, "the reader's request", blocked)
		if _, err := l.Upgrade(x.Context(t.Context())); !errors.As(err, new(*mortise.DeadlockError)) || l.Err() != nil {
			t.Errorf("Upgrade: %v, then %v", err, l.Err())
		}
		unlock(t, l)
		unlock(t, x)
		unlock(t, comes(t, "the reader's request", blocked))
		unlock(t, reader)
		f.nothingLeft()
	})
}

// TestUpgradesThatCross lets each of two callers hold an upgradable lock, and the other's key as a
// reader. Both upgrade, each with the context of the last lock that it holds. The second one must
// be refused, also if both wait through a third caller, and if the reader's lock is not under the
// upgradable one.
func TestUpgradesThatCross(t *testing.T) {
	slow.UnderRace(t)
	reader := func(key string) mortise.Request { return mortise.Request{Key: key, Mode: mortise.Shared} }
	for name, under := range map[string]bool{"readers under the upgradable locks": true, "two contexts": false} {
		for _, third := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a third caller: %v", name, third), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFleet(t, 3)
					acquire := func(node int, ctx context.Context, r mortise.Request) *mortise.Lock {
						t.Helper()
						l, err := f.nodes[node].Acquire(ctx, r)
						if err != nil {
							t.Fatal(err)
						}
						return l
					}
					var ups, reads []*mortise.Lock
					for i := range 2 {
						ups = append(ups, f.acquire(i, upgradable(fmt.Sprint("k", i))))
					}
					own := "k0" // what the second caller reads
					var between *mortise.Lock
					blocked := make(chan *mortise.Lock, 1)
					if third {
						own = "x"
						between = f.acquire(2, reader("k0"))
					}
					for i, key := range []string{"k1", own} {
						ctx := t.Context()
						if under {
							ctx = ups[i].Context(ctx)
						}
						reads = append(reads, acquire(i, ctx, reader(key)))
					}
					if third { // it reads k0, and waits for the second caller's x
						go func() {
							waiting, _ := f.nodes[2].Lock(between.Context(t.Context()), "x")
							blocked <- waiting
						}()
						waits(t, "the third caller", blocked)
					}
					first, leave := context.WithCancel(reads[0].Context(t.Context()))
					told := make(chan error, 1)
					go func() {
						_, err := ups[0].Upgrade(first)
						told <- err
					}()
					time.Sleep(time.Second)
					second, end := context.WithTimeout(reads[1].Context(t.Context()), 10*time.Second)
					defer end()
					var deadlock *mortise.DeadlockError
					if _, err := ups[1].Upgrade(second); !errors.As(err, &deadlock) ||
						len(deadlock.Circle) < 2 || deadlock.Circle[0].Key != "k1" || ups[1].Err() != nil {
						t.Errorf("the second upgrade: %v, then %v", err, ups[1].Err())
					}
					leave()
					if err := <-told; !errors.Is(err, context.Canceled) {
						t.Errorf("the first upgrade: %v", err)
					}
					for _, l := range append(reads, ups...) {
						unlock(t, l)
					}
					if third {
						unlock(t, comes(t, "the third caller", blocked))
						unlock(t, between)
					}
					f.nothingLeft()
				})
			})
		}
	}
}

// TestUpgradesThatOnlySeemToCross has other goroutines read under the upgradable locks. Each reader
// ends by itself, so both upgrades must be granted: they were not made with the readers' contexts.
func TestUpgradesThatOnlySeemToCross(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ups := []*mortise.Lock{f.acquire(0, upgradable("k0")), f.acquire(1, upgradable("k1"))}
		var readers, upgrades sync.WaitGroup
		for i, key := range []string{"k1", "k0"} {
			l, err := f.nodes[i].Acquire(ups[i].Context(t.Context()), mortise.Request{Key: key, Mode: mortise.Shared})
			if err != nil {
				t.Fatal(err)
			}
			readers.Go(func() {
				time.Sleep(5 * time.Second) // reads
				unlock(t, l)
			})
			upgrades.Go(func() {
				time.Sleep(time.Second)
				up, err := ups[i].Upgrade(ups[i].Context(t.Context()))
				if err != nil {
					t.Errorf("upgrade %d: %v", i, err)
					return
				}
				unlock(t, up)
			})
		}
		upgrades.Wait()
		readers.Wait()
		unlock(t, ups[0])
		unlock(t, ups[1])
		f.nothingLeft()
	})
}

// TestAnUpgradeSurvivesAFailover waits for an upgrade while the leader crashes.
func TestAnUpgradeSurvivesAFailover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		l := f.acquire((leader+1)%3, upgradable("k"))
		reader := f.acquire((leader+2)%3, mortise.Request{Key: "k", Mode: mortise.Shared})
		pending := upgradeLater(t, l)
		waits(t, "the upgrade", pending)
		f.crash(leader)
		unlock(t, reader)
		up := <-pending
		if up == nil || up.Err() != nil || l.Err() != nil {
			t.Fatal("the upgrade has not survived")
		}
		unlock(t, up)
		unlock(t, l)
	})
}

// TestAnUpgradeSharesTheDoubtOfItsLock leaves the group without a majority.
func TestAnUpgradeSharesTheDoubtOfItsLock(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		l := f.acquire(holder, mortise.Request{Key: "k", Mode: mortise.Upgradable, JeopardyGrace: longGrace})
		up := upgrade(t, l)
		f.noMajority()
		awaitDoubt(t, l)
		awaitDoubt(t, up)
		if err := up.Err(); err != mortise.ErrInJeopardy {
			t.Errorf("in doubt: %v", err)
		}
		if _, err := l.Upgrade(t.Context()); !errors.Is(err, mortise.ErrInJeopardy) {
			t.Errorf("Upgrade in doubt: %v", err)
		}
		time.Sleep(time.Minute)
		f.rejoinAll()
		for _, one := range []*mortise.Lock{l, up} {
			if err := regain(t, one); err != nil {
				t.Errorf("after the doubt: %v", err)
			}
		}
		unlock(t, up)
		unlock(t, l)
		f.nothingLeft()
	})
}

// TestHooksTellOfUpgrades waits for an upgrade while a writer waits, which does not count.
func TestHooksTellOfUpgrades(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		l := f.acquire(1, upgradable("k"))
		if e := ears[1].last(t); e.Mode != mortise.Upgradable || e.Outcome != mortise.OutcomeGranted {
			t.Errorf("the lock: %+v", e)
		}
		reader := f.acquire(2, mortise.Request{Key: "k", Mode: mortise.Shared})
		writer := f.later(0, mortise.Request{Key: "k"})
		waits(t, "a writer", writer)
		pending := upgradeLater(t, l)
		waits(t, "the upgrade", pending)
		unlock(t, reader)
		up := comes(t, "the upgrade", pending)
		e := ears[1].last(t)
		if e.Mode != mortise.Exclusive || e.Outcome != mortise.OutcomeGranted || e.Token != up.Token() ||
			e.Behind == nil || e.Behind.Token != reader.Token() || e.Waiting != 0 || e.Took < 50*time.Millisecond {
			t.Errorf("the upgrade: %+v, behind %+v", e, e.Behind)
		}
		unlock(t, l)
		ears[1].last(t)
		for _, line := range []string{"unlocked confirmed", "lost unknown"} { // in any order
			if lines := ears[1].lines; !slices.Contains(lines, line) {
				t.Errorf("the upgrade has ended with its lock: the hooks tell %q, and not %q", lines, line)
			}
		}
		_ = up.Unlock(t.Context())
		unlock(t, comes(t, "the writer", writer))
	})
}
