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
