package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestEachHandleHasItsOwnMaxHold enters a lock again, with every combination of limits, and unlocks
// a handle in time or not. A handle must end at its own limit, and no limit may end the other
// handle. The lock must be free when both have ended.
func TestEachHandleHasItsOwnMaxHold(t *testing.T) {
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

// TestTheReadersThatAreLeft unlocks the first handle of locks of every kind while a reader is inside,
// and the other way round. A lock must then be as closed as the handles that are left need it.
func TestTheReadersThatAreLeft(t *testing.T) {
	type R = mortise.Request
	for name, c := range map[string]leaving{
		"a key": {R{Key: "t/a"}, R{Key: "t/a", Shared: true},
			[]R{{Key: "t/a", Shared: true}, {Key: "t/a", Upgradable: true}}, []R{{Key: "t/a"}}},
		"two keys": {R{Keys: []string{"t/a", "x"}}, R{Key: "t/a", Shared: true},
			[]R{{Key: "t/a", Shared: true}, {Key: "x", Shared: true}}, []R{{Key: "t/a"}}},
		"a node": {R{Path: "t/a"}, R{Path: "t/a", Shared: true},
			[]R{{Path: "t/a", Shared: true}, {Path: "t", Shared: true}, {Path: "t/c"}},
			[]R{{Path: "t/a"}, {Path: "t/a/z"}, {Path: "t"}}},
		"a node below": {R{Path: "t/a"}, R{Path: "t/a/b", Shared: true},
			[]R{{Path: "t/a/b/c", Shared: true}}, []R{{Path: "t/a/b"}, {Path: "t/a/b/c"}}},
		"the key of a node": {R{Path: "t/a"}, R{Key: "t/a", Shared: true},
			[]R{{Key: "t/a", Shared: true}, {Path: "t/c"}}, []R{{Key: "t/a"}}},
		"a root": {R{Path: "t"}, R{Path: "t", Shared: true},
			[]R{{Path: "t/q", Shared: true}}, []R{{Path: "t/q"}, {Path: "t"}, {Key: "t"}}},
		"below a root": {R{Path: "t"}, R{Path: "t/b", Shared: true},
			[]R{{Path: "t/b", Shared: true}}, []R{{Path: "t/b"}, {Path: "t/b/c"}}},
		"upgradable": {R{Key: "t/a", Upgradable: true}, R{Key: "t/a", Shared: true},
			[]R{{Key: "t/a", Shared: true}, {Key: "t/a", Upgradable: true}}, []R{{Key: "t/a"}}},
		"overdue": {R{Key: "t/a", MaxHold: time.Second}, R{Key: "t/a", Shared: true},
			[]R{{Key: "t/a", Shared: true}}, []R{{Key: "t/a"}}},
		"overdue with a delay": {R{Key: "t/a", MaxHold: time.Second, LockDelay: 5 * time.Second},
			R{Key: "t/a", Shared: true}, []R{{Key: "t/a", Shared: true}}, []R{{Key: "t/a"}}},
		"a resumed root": {R{Path: "t", LockDelay: time.Minute}, R{Path: "t", Shared: true},
			[]R{{Path: "t/q", Shared: true}}, []R{{Path: "t/q"}, {Key: "t"}}},
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
		first = f.acquire(0, mortise.Request{Key: first.Key(), Resume: first.Token()})
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
		if !c.first.Upgradable && try(c.free[0]) {
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
		l := f.acquire(0, mortise.Request{Key: "k", Upgradable: true})
		up, err := l.Upgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reader, err := f.nodes[0].RLock(up.Context(t.Context()), "k")
		if err != nil || reader.Token() != l.Token() {
			t.Fatal(err)
		}
		_, err = f.nodes[0].Acquire(t.Context(), mortise.Request{Key: "k", Shared: true, Try: true})
		wantIs(t, err, mortise.ErrHeld)
		unlock(t, l) // it also ends the upgrade
		time.Sleep(50 * time.Millisecond)
		if err := up.Err(); err == nil || reader.Err() != nil {
			t.Errorf("the upgrade: %v, the reader: %v", err, reader.Err())
		}
		unlock(t, f.acquire(0, mortise.Request{Key: "k", Upgradable: true, Try: true}))
		_ = up.Unlock(t.Context())
		unlock(t, reader)
		f.nothingLeft()
	})
}
