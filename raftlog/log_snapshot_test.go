package raftlog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// alone returns the running log of a group with one voter, and its disk. Each snapshot takes one
// step more than the given number.
func alone(t *testing.T, steps int) (*party, *Log, *recorder, *disk) {
	t.Helper()
	d := &disk{MemoryStore: newTestStore(t, 1, []uint64{1})}
	p := startParty(t, 1, func(c *Config) {
		c.SnapshotBytes, c.Store = 5000, d
		c.Applier.(*recorder).steps = steps
	})
	l, app := p.logs[1], p.apps[1]
	l.Campaign()
	synctest.Wait()
	if !l.Status().Leading {
		t.Fatal("it does not lead")
	}
	return p, l, app, d
}

func batchOf(l *Log) { l.Propose(2, []byte(strings.Repeat("x", 10_000))) }

// Entries are proposed and applied while a snapshot is taken, and none of them is in the
// snapshot. The test ends the snapshot after ten entries, because the number of steps in that
// time depends on the machine.
func TestWorkGoesOnBetweenTheStepsOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 24 // a step takes about a microsecond
		_, l, app, d := alone(t, most)
		open, before := 0, 0
		app.view(func(r *recorder) {
			r.onStep = func(int) {
				if r.open {
					open++
				}
				// Propose one batch at a time, so that each batch has its own entry.
				if r.enough = r.entries > 10; !r.enough && r.entries >= before {
					before = r.entries + 1
					l.Propose(2, []byte("y"))
				}
			}
		})
		batchOf(l)
		synctest.Wait()
		app.view(func(r *recorder) {
			if open != 0 {
				t.Errorf("%d of %d steps came before the end of their turn", open, r.stepped)
			}
			if !r.enough {
				t.Errorf("%d entries were applied in %d steps: the work does not go on", r.entries, r.stepped)
			}
		})
		_, state, err := open2(d)
		if err != nil || string(state) != strings.Repeat("x", 10_000) || d.names() != 1 {
			t.Errorf("the snapshot holds %d bytes (%v), want the 10,000 of its beginning; %d were named", len(state),
				err, d.names())
		}
		if got := l.Status(); got.Snapshots != 1 {
			t.Errorf("%d snapshots are counted", got.Snapshots)
		}
	})
}

func open2(d *disk) (Configuration, []byte, error) {
	st, err := d.Load()
	if err != nil {
		return Configuration{}, nil, err
	}
	return open(st.Snapshot)
}

func TestWorkGoesOnWhileASnapshotIsPutTogetherAndWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, app, d := alone(t, 3)
		app.view(func(r *recorder) { r.onJoin = func() { time.Sleep(time.Second) } })
		d.set(func(d *disk) { d.writing = func(context.Context) error { time.Sleep(10 * time.Second); return nil } })
		batchOf(l)
		synctest.Wait()
		began := time.Now()
		for i := range 100 {
			l.Propose(2, []byte("y"))
			synctest.Wait()
			app.view(func(r *recorder) {
				if r.entries != i+2 {
					t.Fatalf("after %v: %d entries applied, want %d", time.Since(began), r.entries, i+2)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		if st := l.Status(); st.Retired != nil || !st.Leading || d.names() != 0 {
			t.Errorf("%+v, %d named", st, d.names())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, state, err := open2(d); err != nil || len(state) != 10_000 || d.names() != 1 {
			t.Errorf("the snapshot holds %d bytes (%v), %d named", len(state), err, d.names())
		}
	})
}

func TestRestoreEndsASnapshot(t *testing.T) {
	for _, joining := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disks := map[uint64]*disk{}
			p := startParty(t, 3, func(c *Config) {
				disks[c.ID] = &disk{MemoryStore: c.Store.(*MemoryStore)}
				c.SnapshotBytes, c.KeepEntries, c.Store = 1000, -1, disks[c.ID]
			})
			l, _ := p.lead()
			away := l.Status().ID%3 + 1
			app, term := p.apps[away], l.Status().Term
			hold := make(chan struct{})
			app.view(func(r *recorder) {
				if r.steps = 1 << 30; joining { // the snapshot never ends, or AppendTo blocks
					r.steps, r.onJoin = 0, func() { <-hold }
				} else {
					r.onStep = func(int) { time.Sleep(time.Millisecond) } // without the pause no time would pass
				}
			})
			write := func(n int) {
				for range n {
					l.Propose(term, []byte(strings.Repeat("z", 400)))
					time.Sleep(10 * time.Millisecond)
				}
			}
			write(5)
			p.losing(func(m *raftpb.Message) bool { return m.GetTo() == away || m.GetFrom() == away })
			write(30)
			app.view(func(r *recorder) { r.steps = 0 })
			p.losing(nil)
			time.Sleep(3 * time.Second)
			app.view(func(r *recorder) {
				if len(r.restored) < 2 || len(r.text) != 35*400 {
					t.Fatalf("nothing was restored: %v, %d bytes", r.restored, len(r.text))
				}
				r.onJoin, r.onStep = nil, nil
			})
			close(hold)
			term = l.Status().Term
			write(60)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := p.logs[away].Status(); got.Retired != nil || got.Snapshots == 0 || disks[away].names() == 0 {
				t.Errorf("no snapshot is taken any more: %+v", got)
			}
			config, state, err := open2(disks[away])
			if err != nil || len(config.Voters) != 3 || len(state)%400 != 0 || len(state) < 35*400 {
				t.Errorf("the snapshot holds %d bytes of %v (%v)", len(state), config, err)
			}
		})
	}
}

func TestFailureWhileASnapshotIsTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		fail  func(*recorder, *disk)
		kinds []error
	}{
		"Step panics": {func(r *recorder, _ *disk) { r.onStep = func(int) { panic(errTest) } },
			[]error{ErrBroken, ErrPanic, errTest}},
		"AppendTo panics": {func(r *recorder, _ *disk) { r.onJoin = func() { panic(errTest) } },
			[]error{ErrBroken, ErrPanic, errTest}},
		"AppendTo exits": {func(r *recorder, _ *disk) { r.onJoin = runtime.Goexit }, []error{ErrBroken, ErrPanic}},
		"Prepare fails": {func(_ *recorder, d *disk) { d.writing = func(context.Context) error { return errTest } },
			[]error{ErrStorage, errTest}},
		"Prepare panics": {func(_ *recorder, d *disk) { d.writing = func(context.Context) error { panic(errTest) } },
			[]error{ErrStorage, ErrPanic, errTest}},
		"Prepare panics, inline": {func(_ *recorder, d *disk) {
			d.inline = true
			d.writing = func(context.Context) error { panic(errTest) }
		}, []error{ErrStorage, ErrPanic, errTest}},
		"Prepare fails, inline": {func(_ *recorder, d *disk) {
			d.inline = true
			d.writing = func(context.Context) error { return errTest }
		}, []error{ErrStorage, errTest}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{MemoryStore: newTestStore(t, 1, []uint64{1})}
				p := startParty(t, 1, func(c *Config) {
					c.SnapshotBytes, c.Store = 5000, d
					tc.fail(c.Applier.(*recorder), d)
				})
				l := p.logs[1]
				l.Campaign()
				batchOf(l)
				synctest.Wait()
				batchOf(l)
				wantRetired(t, l, p.apps[1], tc.kinds...)
				if d.closed != 1 {
					t.Errorf("store closed %d times", d.closed)
				}
			})
		})
	}
}

// synctest.Test fails if a goroutine is leaked, and disk panics if it is closed during a Prepare.
func TestCloseWhileASnapshotIsTaken(t *testing.T) {
	for name, reach := range map[string]func(r *recorder, d *disk){
		"between steps": func(r *recorder, _ *disk) {
			r.steps, r.onStep = 1<<30,
				func(int) { time.Sleep(time.Millisecond) }
		},
		"being put together": func(r *recorder, _ *disk) { r.onJoin = func() { time.Sleep(2 * time.Second) } },
		"being written": func(_ *recorder, d *disk) {
			d.writing = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		},
		"written slowly": func(_ *recorder, d *disk) {
			d.writing = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		},
		"being named": func(_ *recorder, d *disk) { d.delay = 900 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, l, app, d := alone(t, 2)
				app.view(func(r *recorder) { d.set(func(d *disk) { reach(r, d) }) })
				batchOf(l)
				time.Sleep(time.Second)
				if err := l.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if d.closed != 1 || len(app.retired) != 0 || d.names() > 0 && name != "being named" {
					t.Errorf("closed %d times, retired %v, %d named", d.closed, app.retired, d.names())
				}
			})
		})
	}
}

// Close must return ErrHung and leave the store open if Prepare ignores the end of its context.
func TestCloseGivesUpOnAHungPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, _, d := alone(t, 0)
		hang := make(chan struct{})
		d.set(func(d *disk) { d.writing = func(context.Context) error { <-hang; return nil } })
		batchOf(l)
		synctest.Wait()
		began := time.Now()
		if err := l.Close(); !errors.Is(err, ErrHung) || time.Since(began) != maxCloseWait || d.closed != 0 {
			t.Errorf("Close: %v after %v, store closed %d times", err, time.Since(began), d.closed)
		}
		close(hang)
	})
}

// A follower whose owner was blocked in Restore handles its inbox before it counts the elapsed
// time.
func TestALongRestoreCallsNoElection(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprint("nothing waits: ", quiet), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startParty(t, 3, func(c *Config) { c.SnapshotBytes, c.KeepEntries = 1000, -1 })
				l, _ := p.lead()
				term, away := l.Status().Term, l.Status().ID%3+1
				p.losing(func(m *raftpb.Message) bool {
					return m.GetTo() == away || m.GetFrom() == away && m.GetType() != raftpb.MsgAppResp
				})
				for range 10 {
					l.Propose(term, []byte(strings.Repeat("x", 500)))
					synctest.Wait()
				}
				var restoring atomic.Bool
				p.apps[away].view(func(r *recorder) {
					r.onRestore = func() error {
						restoring.Store(true)
						time.Sleep(time.Second)
						restoring.Store(false)
						return nil
					}
				})
				asked := 0
				p.losing(func(m *raftpb.Message) bool {
					if m.GetFrom() == away && (m.GetType() == raftpb.MsgPreVote || m.GetType() == raftpb.MsgVote) {
						asked++
					}
					return quiet && m.GetTo() == away && restoring.Load()
				})
				time.Sleep(4 * time.Second)
				synctest.Wait()
				app := p.apps[away]
				app.view(func(r *recorder) {
					if len(r.restored) < 2 {
						t.Fatalf("nothing was restored: %v", r.restored)
					}
				})
				if st := l.Status(); asked > 0 || !st.Leading || st.Term != term {
					t.Errorf("it asked for %d votes, and the leader of term %d is now %+v", asked, term, st)
				}
			})
		})
	}
}
