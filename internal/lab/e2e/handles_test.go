package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestEachHandleHasItsOwnMaxHold enters a lock again, with every combination of limits, and unlocks
// a handle in time or not. A handle must end at its own limit, and no limit may end the other
// handle. The lock must be free when both have ended.
func TestEachHandleHasItsOwnMaxHold(t *testing.T) {
	slow.UnderRace(t)
	const unlockAt, never = 2 * time.Second, time.Hour
	for _, limits := range [][2]time.Duration{{10, 0}, {0, 10}, {10, 5}, {5, 10}, {10, 10}, {0, 0}} {
		for _, inTime := range []string{"neither", "the first", "the inner"} {
			for _, leaks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %s is unlocked in time, leaks %v", limits, inTime, leaks), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						f := startFleet(t, 1, func(c *mortise.Config) {
							if leaks {
								c.Hooks = &mortise.Hooks{Leaked: func(mortise.LockEvent) {}}
							}
						})
						first := f.acquire(0, mortise.Request{Key: "k", MaxHold: limits[0] * time.Second})
						inner, err := f.nodes[0].Acquire(first.Context(t.Context()),
							mortise.Request{Key: "k", MaxHold: limits[1] * time.Second})
						if err != nil {
							t.Fatal(err)
						}
						began, ends := time.Now(), [2]time.Duration{never, never}
						for i, limit := range limits {
							if limit > 0 {
								ends[i] = limit * time.Second
							}
						}
						handles := [2]*mortise.Lock{first, inner}
						contexts := [2]context.Context{first.Context(t.Context()), inner.Context(t.Context())}
						time.Sleep(unlockAt)
						for i, name := range []string{"the first", "the inner"} {
							if name == inTime {
								unlock(t, handles[i])
								ends[i] = unlockAt
							}
						}
						for _, at := range []time.Duration{3, 6, 11} {
							time.Sleep(at*time.Second - time.Since(began))
							synctest.Wait()
							for i, l := range handles {
								want := error(nil)
								switch {
								case ends[i] == unlockAt:
									want = mortise.ErrUnlocked
								case ends[i] < at*time.Second:
									want = mortise.ErrLost
								}
								if err := l.Err(); !errors.Is(err, want) {
									t.Errorf("after %d s, handle %d: %v, want %v", at, i, err, want)
								}
								if over := contexts[i].Err() != nil; want != mortise.ErrUnlocked && over != (want != nil) {
									t.Errorf("after %d s, the context of handle %d has ended: %v", at, i, over)
								}
							}
						}
						for i, l := range handles {
							if ends[i] == never {
								if f.peek(0, "k").Queue == nil {
									t.Error("the lock is free, and a handle is held")
								}
								unlock(t, l)
							}
						}
						f.mustBeFree(0, "k", "all handles have ended")
						f.nothingLeft()
					})
				})
			}
		}
	}
}

// TestAHandleEndsInDoubt checks that the MaxHold of a handle also ends it while the lock is in
// doubt, and that the other handle is good again afterwards.
func TestAHandleEndsInDoubt(t *testing.T) {
	slow.UnderRace(t)
	for _, limits := range [][2]time.Duration{{40 * time.Second, 0}, {0, 40 * time.Second}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				first := f.acquire(0, mortise.Request{Key: "k", JeopardyGrace: longGrace, MaxHold: limits[0]})
				inner, err := f.nodes[0].Acquire(first.Context(t.Context()),
					mortise.Request{Key: "k", MaxHold: limits[1]})
				if err != nil {
					t.Fatal(err)
				}
				ends, stays := first, inner
				if limits[0] == 0 {
					ends, stays = inner, first
				}
				f.noMajority()
				awaitDoubt(t, ends)
				wantIs(t, ends.Err(), mortise.ErrInJeopardy)
				f.rejoinAll()
				if err := regain(t, ends); err != nil {
					t.Fatal(err)
				}
				ctx := ends.Context(t.Context())
				f.noMajority()
				<-ctx.Done()
				wantIs(t, ends.Err(), mortise.ErrInJeopardy)
				time.Sleep(40 * time.Second)
				wantIs(t, ends.Err(), mortise.ErrLost)
				wantIs(t, stays.Err(), mortise.ErrInJeopardy)
				f.rejoinAll()
				if err := regain(t, stays); err != nil {
					t.Fatal(err)
				}
				if closed(stays.Done()) || !closed(ends.Done()) {
					t.Error("Done of the good handle is closed, or Done of the other is open")
				}
				unlock(t, stays)
				f.ready()
				f.nothingLeft()
			})
		})
	}
}

// leaving is a lock that a reader has entered, and that its first handle leaves.
type leaving struct {
	first, inner mortise.Request
	free, taken  []mortise.Request // what another instance can and cannot get afterwards
}

// TestTheReadersThatAreLeft unlocks the first handle of locks of every kind while a reader is
// inside, and the other way round. A lock must then be as closed as the handles that are left need
// it.
func TestTheReadersThatAreLeft(t *testing.T) {
	slow.UnderRace(t)
	type R = mortise.Request
	for name, c := range map[string]leaving{
		"a key": {R{Key: "t/a"}, R{Key: "t/a", Mode: mortise.Shared},
			[]R{{Key: "t/a", Mode: mortise.Shared}, {Key: "t/a", Mode: mortise.Upgradable}}, []R{{Key: "t/a"}}},
		"two keys": {R{Key: "t/a", Also: []mortise.Part{{Key: "x"}}}, R{Key: "t/a", Mode: mortise.Shared},
			[]R{{Key: "t/a", Mode: mortise.Shared}, {Key: "x", Mode: mortise.Shared}}, []R{{Key: "t/a"}}},
		"a node": {R{Key: "t/a", Tree: true}, R{Key: "t/a", Tree: true, Mode: mortise.Shared},
			[]R{{Key: "t/a", Tree: true, Mode: mortise.Shared}, {Key: "t", Tree: true, Mode: mortise.Shared},
				{Key: "t/c", Tree: true}},
			[]R{{Key: "t/a", Tree: true}, {Key: "t/a/z", Tree: true}, {Key: "t", Tree: true}}},
		"a node below": {R{Key: "t/a", Tree: true}, R{Key: "t/a/b", Tree: true, Mode: mortise.Shared},
			[]R{{Key: "t/a/b/c", Tree: true, Mode: mortise.Shared}},
			[]R{{Key: "t/a/b", Tree: true}, {Key: "t/a/b/c", Tree: true}}},
		"the key of a node": {R{Key: "t/a", Tree: true}, R{Key: "t/a", Mode: mortise.Shared},
			[]R{{Key: "t/a", Mode: mortise.Shared}, {Key: "t/c", Tree: true}}, []R{{Key: "t/a"}}},
		"a root": {R{Key: "t", Tree: true}, R{Key: "t", Tree: true, Mode: mortise.Shared},
			[]R{{Key: "t/q", Tree: true, Mode: mortise.Shared}},
			[]R{{Key: "t/q", Tree: true}, {Key: "t", Tree: true}, {Key: "t"}}},
		"below a root": {R{Key: "t", Tree: true}, R{Key: "t/b", Tree: true, Mode: mortise.Shared},
			[]R{{Key: "t/b", Tree: true, Mode: mortise.Shared}}, []R{{Key: "t/b", Tree: true}, {Key: "t/b/c", Tree: true}}},
		"upgradable": {R{Key: "t/a", Mode: mortise.Upgradable}, R{Key: "t/a", Mode: mortise.Shared},
			[]R{{Key: "t/a", Mode: mortise.Shared}, {Key: "t/a", Mode: mortise.Upgradable}}, []R{{Key: "t/a"}}},
		"overdue": {R{Key: "t/a", MaxHold: time.Second}, R{Key: "t/a", Mode: mortise.Shared},
			[]R{{Key: "t/a", Mode: mortise.Shared}}, []R{{Key: "t/a"}}},
		"overdue with a delay": {R{Key: "t/a", MaxHold: time.Second, LockDelay: 5 * time.Second},
			R{Key: "t/a", Mode: mortise.Shared}, []R{{Key: "t/a", Mode: mortise.Shared}}, []R{{Key: "t/a"}}},
		"a resumed root": {R{Key: "t", Tree: true, LockDelay: time.Minute}, R{Key: "t", Tree: true, Mode: mortise.Shared},
			[]R{{Key: "t/q", Tree: true, Mode: mortise.Shared}}, []R{{Key: "t/q", Tree: true}, {Key: "t"}}},
	} {
		for _, innerFirst := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the reader leaves first: ", innerFirst), func(t *testing.T) {
				bubble(t, func(t *testing.T) { c.leave(t, innerFirst, name == "a resumed root") })
			})
		}
	}
}

func (c *leaving) leave(t *testing.T, innerFirst, resumed bool) {
	f := startFleet(t, 2)
	first := f.acquire(0, c.first)
	if resumed {
		if err := first.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		first = f.acquire(0, resuming{key: first.Key(), token: first.Token()})
	}
	inner, err := f.nodes[0].Acquire(first.Context(t.Context()), c.inner)
	if err != nil || inner.Token() != first.Token() {
		t.Fatalf("not entered: %v", err)
	}
	try := func(r mortise.Request) bool {
		r.Try = true
		l, err := f.nodes[1].Acquire(t.Context(), r)
		if err != nil {
			wantIs(t, err, mortise.ErrHeld)
			return false
		}
		unlock(t, l)
		return true
	}
	left := inner
	switch {
	case innerFirst:
		unlock(t, inner)
		for _, r := range c.taken {
			if try(r) {
				t.Errorf("%+v was granted beside the first handle", r)
			}
		}
		if c.first.Mode != mortise.Upgradable && try(c.free[0]) {
			t.Errorf("%+v was granted beside the exclusive first handle", c.free[0])
		}
		unlock(t, first)
		f.nothingLeft()
		return
	case c.first.MaxHold > 0:
		time.Sleep(c.first.MaxHold + time.Millisecond)
		if c.first.LockDelay > 0 {
			if try(c.free[0]) {
				t.Error("a reader was granted while code may write under the overdue handle")
			}
			time.Sleep(c.first.LockDelay)
		}
	default:
		unlock(t, first)
	}
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	for _, r := range c.free {
		if !try(r) {
			t.Errorf("%+v is refused, and only a reader is left", r)
		}
	}
	for _, r := range c.taken {
		if try(r) {
			t.Errorf("%+v was granted beside the reader", r)
		}
	}
	if err := left.Err(); err != nil {
		t.Error(err)
	}
	unlock(t, left)
	f.nothingLeft()
}

// TestAReaderOutlivesAnUpgrade enters an upgraded lock as a reader. The reader is a handle of the
// upgradable lock, so neither the end of the upgrade nor that of the lock leaves others out.
func TestAReaderOutlivesAnUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l := f.acquire(0, mortise.Request{Key: "k", Mode: mortise.Upgradable})
		up, err := l.Upgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reader, err := f.nodes[0].RLock(up.Context(t.Context()), "k")
		if err != nil || reader.Token() != l.Token() {
			t.Fatal(err)
		}
		_, err = f.nodes[0].Acquire(t.Context(), mortise.Request{Key: "k", Mode: mortise.Shared, Try: true})
		wantIs(t, err, mortise.ErrHeld)
		unlock(t, l) // it also ends the upgrade
		time.Sleep(50 * time.Millisecond)
		if err := up.Err(); err == nil || reader.Err() != nil {
			t.Errorf("the upgrade: %v, the reader: %v", err, reader.Err())
		}
		unlock(t, f.acquire(0, mortise.Request{Key: "k", Mode: mortise.Upgradable, Try: true}))
		_ = up.Unlock(t.Context())
		unlock(t, reader)
		f.nothingLeft()
	})
}

// TestUpgradeUnderAnExclusiveLock upgrades an upgradable handle of exclusive locks of every kind,
// and unlocks the handles in every order. The lock must exclude all others until the first and the
// upgradable handle have ended, and only writers while a reader is left.
func TestUpgradeUnderAnExclusiveLock(t *testing.T) {
	slow.UnderRace(t)
	for name, outer := range map[string]any{
		"a key":      mortise.Request{Key: "t/k"},
		"two keys":   mortise.Request{Key: "t/k", Also: []mortise.Part{{Key: "x"}}},
		"a node":     mortise.Request{Key: "t/k", Tree: true},
		"sticky":     stickily{key: "t/k"},
		"an upgrade": mortise.Request{Key: "t/k", Mode: mortise.Upgradable},
	} {
		for _, order := range []string{"oiu", "oui", "iou", "iuo", "uoi", "uio"} {
			t.Run(name+" "+order, func(t *testing.T) {
				bubble(t, func(t *testing.T) { upgradeUnder(t, outer, order) })
			})
		}
	}
}

// upgradeUnder unlocks in an order: "o" is the outer lock, "i" the upgradable handle, "u" its
// upgrade.
func upgradeUnder(t *testing.T, r any, order string) {
	f := startFleet(t, 2, func(c *mortise.Config) {
		c.Hooks = &mortise.Hooks{Leaked: func(mortise.LockEvent) {}}
	})
	outer := f.acquire(0, r)
	_, keeps := r.(stickily)
	upgrade := func(l *mortise.Lock) *mortise.Lock {
		up, err := l.Upgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return up
	}
	if r, is := r.(mortise.Request); is && r.Mode == mortise.Upgradable {
		defer unlock(t, outer)
		outer = upgrade(outer)
	}
	inner, err := f.nodes[0].Acquire(outer.Context(t.Context()), mortise.Request{Key: "t/k", Mode: mortise.Upgradable})
	if err != nil {
		t.Fatal(err)
	}
	up := upgrade(inner)
	if inner.Token() != outer.Token() || up.Token() != outer.Token() {
		t.Error("another token than the hold's")
	}
	_, err = inner.Upgrade(t.Context())
	wantIs(t, err, mortise.ErrBadRequest)
	wantIs(t, inner.Downgrade(t.Context()), mortise.ErrBadRequest)
	reader, err := f.nodes[0].RLock(up.Context(t.Context()), "t/k")
	if err != nil {
		t.Fatal(err)
	}
	held := map[rune]*mortise.Lock{'o': outer, 'i': inner, 'u': up}
	for _, name := range order {
		unlock(t, held[name])
		delete(held, name)
		if err := up.Err(); held['i'] == nil && err != mortise.ErrUnlocked {
			t.Errorf("the upgrade outlives its handle: %v", err)
		}
		if name == 'u' && held['i'] != nil {
			unlock(t, upgrade(inner))
		}
		time.Sleep(50 * time.Millisecond)
		shared := held['o'] == nil && held['i'] == nil && !keeps
		for _, mode := range []mortise.Mode{mortise.Shared, mortise.Exclusive} {
			l, err := f.nodes[1].Acquire(t.Context(), mortise.Request{Key: "t/k", Mode: mode, Try: true})
			if free := err == nil; free != (mode == mortise.Shared && shared) {
				t.Errorf("%q are left, a request is %v: %v", slices.Sorted(maps.Keys(held)), mode, err)
			} else if free {
				unlock(t, l)
			}
		}
	}
	unlock(t, reader)
}

// TestTheUpgradeOfAHandleEndsAtItsMaxHold lets the upgradable handle of an exclusive lock reach its
// MaxHold. Its upgrade must end with it, and code may write under both until the LockDelay has
// passed.
func TestTheUpgradeOfAHandleEndsAtItsMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		outer := f.acquire(0, mortise.Request{Key: "k", LockDelay: 5 * time.Second})
		ctx := outer.Context(t.Context())
		reader, err := f.nodes[0].RLock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		inner, err := f.nodes[0].Acquire(ctx, mortise.Request{Key: "k", Mode: mortise.Upgradable, MaxHold: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		up, err := inner.Upgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		work := up.Context(t.Context())
		unlock(t, outer)
		readable := func(want bool) {
			t.Helper()
			l, err := f.nodes[1].Acquire(t.Context(), mortise.Request{Key: "k", Mode: mortise.Shared, Try: true})
			if err == nil != want {
				t.Errorf("a reader: %v", err)
			}
			if err == nil {
				unlock(t, l)
			}
		}
		readable(false)
		wantIs(t, up.Err(), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		wantIs(t, inner.Err(), mortise.ErrLost)
		wantIs(t, up.Err(), mortise.ErrLost)
		wantIs(t, context.Cause(work), mortise.ErrLost)
		if !closed(up.Done()) {
			t.Error("Done of the upgrade is open")
		}
		readable(false)
		time.Sleep(6 * time.Second)
		readable(true)
		wantIs(t, up.Unlock(t.Context()), mortise.ErrLost)
		wantIs(t, inner.Unlock(t.Context()), mortise.ErrLost)
		unlock(t, reader)
		f.nothingLeft()
	})
}

// TestTheUpgradeOfAHandleLeaks forgets the upgrade of a handle. It must be reported as leaked while
// the upgradable handle is held, and not if that was unlocked, which also ends the upgrade.
func TestTheUpgradeOfAHandleLeaks(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			leaks := make(chan mortise.LockEvent, 10)
			f := startFleet(t, 1, func(c *mortise.Config) {
				c.Hooks = &mortise.Hooks{Leaked: func(e mortise.LockEvent) { leaks <- e }}
			})
			outer := f.acquire(0, mortise.Request{Key: "k"})
			inner, err := f.nodes[0].Acquire(outer.Context(t.Context()), mortise.Request{Key: "k", Mode: mortise.Upgradable})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inner.Upgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, tries := 1, 10_000
			if unlocked {
				unlock(t, inner)
				want, tries = 0, 20
			}
			for i := 0; len(leaks) == 0 && i < tries; i++ {
				runtime.GC()
				time.Sleep(time.Second) // fake; a renewal reports the leaks that are found
			}
			if len(leaks) != want {
				t.Errorf("%d leaks, want %d, the handle is unlocked: %v", len(leaks), want, unlocked)
			}
			unlock(t, inner)
			unlock(t, outer)
			f.nothingLeft()
		})
	}
}
