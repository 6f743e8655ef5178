package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// endLimit is the longest time that ending all nodes simultaneously may take. During most of it a
// leaving node searches for a successor that does not exist.
const endLimit = 15 * time.Second

// endAll ends all running nodes simultaneously, some by Close and some by Leave. It fails the test
// if that takes too long.
func (f *fleet) endAll(what string, leave func(i int) bool) {
	f.t.Helper()
	began := time.Now()
	var ends sync.WaitGroup
	for i, n := range f.nodes {
		if n == nil {
			continue
		}
		f.nodes[i] = nil
		ends.Go(func() {
			if leave(i) {
				_ = n.Leave(context.Background())
			} else if err := n.Close(); err != nil {
				f.t.Errorf("%s: close node %d: %v", what, i, err)
			}
			wantIs(f.t, n.Err(), mortise.ErrClosed)
		})
	}
	ends.Wait()
	took := time.Since(began)
	if took > endLimit {
		f.t.Errorf("%s: the end took %v", what, took)
	}
	synctest.Wait()
}

func TestEndWhileTheyElect(t *testing.T) {
	slow.UnderRace(t)
	for after := time.Duration(0); after < 1600*time.Millisecond; after += 190 * time.Millisecond {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3)
			leader := f.leader()
			granted := make(chan error, 1)
			waiter := f.nodes[(leader+1)%3]
			f.lock((leader+2)%3, "k")
			go func() {
				_, err := waiter.Lock(context.Background(), "k")
				granted <- err
			}()
			f.crash(leader)
			time.Sleep(after)
			f.endAll(after.String(), func(i int) bool { return i == (leader+1)%3 })
			if err := <-granted; !errors.Is(err, mortise.ErrLeaving) && !errors.Is(err, mortise.ErrClosed) {
				t.Errorf("the waiting call ended with %v", err)
			}
		})
	}
}

// TestEndWhileTheyStartAnew ends the instances of a group that has lost its majority, while they
// restart in place.
func TestEndWhileTheyStartAnew(t *testing.T) {
	slow.UnderRace(t)
	for _, after := range []time.Duration{1, 3, 5, 6, 7, 8, 9, 10, 12} {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3)
			f.lock(0, "k")
			poison(f, 0)
			poison(f, 1)
			time.Sleep(after * 990 * time.Millisecond)
			f.endAll(fmt.Sprint(after), func(i int) bool { return i == int(after)%3 })
		})
	}
}

// TestEndWhileASnapshotIsSent ends the sender, the receiver or both while a snapshot is sent over a
// slow connection. If neither ends, the snapshot must arrive.
func TestEndWhileASnapshotIsSent(t *testing.T) {
	slow.UnderRace(t)
	for _, what := range []string{"nobody", "sender", "receiver", "both"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var rate atomic.Int64
				f := newFleet(t)
				for i := range 3 {
					f.throttle(&rate)
					f.start(i, f.config(i, 3))
				}
				f.ready()
				leader := f.leader()
				away := (leader + 1) % 3
				f.isolate(away)
				state := strings.Repeat("k", 480)
				var calls sync.WaitGroup
				for k := range 500 {
					calls.Go(func() { f.lock(leader, fmt.Sprint(state, k)) })
				}
				calls.Wait()
				sender := f.nodes[leader].Replica().Log
				// applied returns the index of the last entry that the receiving node has
				// applied, even if its replica has another raft ID by now.
				applied := func() uint64 {
					if r := f.nodes[away].Replica(); r != nil {
						return r.Log.Status().Applied
					}
					return 0
				}
				for range 8 { // commands that the state machine refuses also make the log grow
					sender.Propose(sender.Status().Term, bytes.Repeat([]byte{0xff}, 1<<20))
					time.Sleep(100 * time.Millisecond)
				}
				// By now the streams have ended, and the data in flight is lost.
				time.Sleep(25 * time.Second)
				want := sender.Status().Applied
				rate.Store(50_000) // the size of the state is 250 kB
				f.rejoin(away)
				time.Sleep(4 * time.Second)
				if now := applied(); now >= want || sender.Status().Snapshots < 2 {
					t.Fatalf("there is no snapshot under way: the voter that was away has applied %d of %d", now, want)
				}
				if what == "nobody" {
					time.Sleep(30 * time.Second)
					if now := applied(); now < want {
						t.Errorf("the voter that was away has applied %d of %d", now, want)
					}
					return
				}
				for _, i := range map[string][]int{"sender": {leader}, "receiver": {away},
					"both": {leader, away}}[what] {
					began := time.Now()
					f.close(i)
					if took := time.Since(began); took > endLimit {
						t.Errorf("node %d took %v to close", i, took)
					}
				}
			})
		})
	}
}

// TestEndWithAFullQueue ends a node on which two thousand calls wait. All calls must return without
// delay, with the reason.
func TestEndWithAFullQueue(t *testing.T) {
	slow.UnderRace(t)
	for name, cut := range map[string]bool{"for a lock": false, "for a leader": true} {
		for _, leave := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", leave: ", leave), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFleet(t, 3)
					i := f.follower()
					f.lock((i+1)%3, "k")
					if cut {
						f.isolate(i)
					}
					n := f.nodes[i]
					const many = 2000
					var ended atomic.Int64
					for range many {
						go func() {
							if _, err := n.Lock(context.Background(), "k"); errors.Is(err, mortise.ErrClosed) ||
								errors.Is(err, mortise.ErrLeaving) {
								ended.Add(1)
							} else {
								t.Errorf("a waiting call ended with %v", err)
							}
						}()
					}
					time.Sleep(time.Second)
					began := time.Now()
					f.nodes[i] = nil
					if leave {
						_ = n.Leave(context.Background())
					} else {
						_ = n.Close()
					}
					took := time.Since(began)
					synctest.Wait()
					if took > endLimit || ended.Load() != many {
						t.Errorf("the end took %v, and %d of %d calls returned", took, ended.Load(), many)
					}
				})
			})
		}
	}
}

// TestAllInstancesLeave ends all instances. No instance may wait for a successor.
func TestAllInstancesLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		for i := range f.nodes {
			l := f.lock(i, fmt.Sprint(i))
			ctx := l.Context(t.Context())
			go func() {
				<-ctx.Done()
				// There may be no instance left that could confirm the release.
				_ = l.Unlock(context.Background())
			}()
		}
		f.endAll("all", func(int) bool { return true })
	})
}

func TestLeaderLeavesWithWaiters(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		leader := f.leader()
		held := f.lock(leader, "k")
		var order []<-chan *mortise.Lock
		for turn := range 6 {
			order = append(order, f.lockLater([]int{(leader + 1) % 3, 3, (leader + 2) % 3}[turn%3], "k"))
		}
		left := make(chan error, 1)
		n := f.nodes[leader]
		f.nodes[leader] = nil
		go func() { left <- n.Leave(t.Context()) }()
		time.Sleep(time.Second)
		began := time.Now()
		unlock(t, held)
		last := held.Token()
		for turn, granted := range order {
			l := <-granted
			if turn == 0 && time.Since(began) > failoverLimit {
				t.Errorf("the first waiter was served after %v", time.Since(began))
			}
			if l.Token() <= last {
				t.Errorf("waiter %d was served out of turn", turn)
			}
			last = l.Token()
			unlock(t, l)
		}
		if err := <-left; err != nil {
			t.Errorf("Leave: %v", err)
		}
		f.nothingLeft()
	})
}

// TestStartIsCancelled ends the context of Start before, during or after the start. Start must
// either return a node that no longer depends on the context, or return an error and leave no
// goroutine.
func TestStartIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		started, refused := 0, 0
		for after := time.Duration(0); after < 5*time.Millisecond; after += 500 * time.Microsecond {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			e := f.world(0)
			random := e.Random
			e.Random = func(b []byte) {
				time.Sleep(time.Millisecond)
				random(b)
			}
			n, err := start(ctx, f.config(0, 3), e)
			if err == nil {
				<-ctx.Done()
				started++
				if err := n.Err(); err != nil {
					t.Errorf("the end of the context of Start ended the node: %v", err)
				}
				err = n.Close()
			} else if refused++; errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if err != nil {
				t.Errorf("after %v: %v", after, err)
			}
			cancel()
			synctest.Wait()
		}
		if started == 0 || refused == 0 {
			t.Errorf("%d started, %d refused: there must be both", started, refused)
		}
	})
}
