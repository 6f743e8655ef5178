package raftlog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

var errTest = errors.New("the disk is on fire")

// wantRetired checks that a log has retired with errors of the given kinds, that Retired was called
// once and last, and that the log ignores all input.
func wantRetired(t *testing.T, l *Log, app *recorder, kinds ...error) {
	t.Helper()
	synctest.Wait()
	st := l.Status()
	for _, kind := range kinds {
		if !errors.Is(st.Retired, kind) {
			t.Fatalf("retired with %v, want %v", st.Retired, kind)
		}
	}
	if l.Propose(st.Term, []byte("x")) {
		t.Error("a retired log takes a batch")
	}
	l.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(99))})
	l.Confirm(st.Term, 1)
	l.Campaign()
	l.Unreachable(2)
	if err := l.Transfer(t.Context(), 0); err != st.Retired {
		t.Errorf("Transfer on a retired log: %v", err)
	}
	names := l.in.left()
	if len(names) > 0 || st.InFlight+st.Queued != 0 || st.Leader != 0 || l.Survey().Replicas != nil {
		t.Errorf("a retired log keeps %v for a turn that never comes, status %+v, survey %+v", names, st, l.Survey())
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	app.view(func(r *recorder) {
		if len(r.retired) != 1 || r.retired[0] != st.Retired || r.late != 0 {
			t.Errorf("told %v, with %d later calls, want once and last %v", r.retired, r.late, st.Retired)
		}
	})
	if got := l.Status(); got.Term != st.Term || got.Leading {
		t.Errorf("a retired log goes on: %+v", got)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing a retired log: %v", err)
	}
}

func TestStorageErrorRetires(t *testing.T) {
	for name, tc := range map[string]struct {
		inline bool
		fail   func(*disk)
		kinds  []error
	}{
		"error":           {false, func(d *disk) { d.err = errTest }, []error{ErrStorage, errTest}},
		"error, inline":   {true, func(d *disk) { d.err = errTest }, []error{ErrStorage, errTest}},
		"panic":           {false, func(d *disk) { d.panics = errTest }, []error{ErrStorage, ErrPanic, errTest}},
		"panic, inline":   {true, func(d *disk) { d.panics = errTest }, []error{ErrStorage, ErrPanic, errTest}},
		"panic, no error": {true, func(d *disk) { d.panics = "oops" }, []error{ErrStorage, ErrPanic}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disks := map[uint64]*disk{}
				p := startParty(t, 3, func(c *Config) {
					disks[c.ID] = &disk{MemoryStore: c.Store.(*MemoryStore), inline: tc.inline}
					c.Store = disks[c.ID]
				})
				l, app := p.lead()
				d := disks[l.Status().ID]
				term := l.Status().Term
				d.set(tc.fail)
				l.Propose(term, []byte("a"))
				wantRetired(t, l, app, tc.kinds...)
				if d.closed != 1 {
					t.Errorf("store closed %d times", d.closed)
				}
				next, _ := p.lead()
				if next == l || next.Status().Term <= term {
					t.Errorf("no other replica leads")
				}
			})
		})
	}
}

func TestBrokenStateMachineRetires(t *testing.T) {
	for name, tc := range map[string]struct {
		fail  func(*recorder)
		kinds []error
	}{
		"Apply fails": {func(r *recorder) { r.onApply = func() error { return errTest } },
			[]error{ErrBroken, errTest}},
		"Apply panics": {func(r *recorder) { r.onApply = func() error { panic(errTest) } },
			[]error{ErrBroken, ErrPanic, errTest}},
		"Apply exits": {func(r *recorder) { r.onApply = func() error { runtime.Goexit(); return nil } },
			[]error{ErrBroken, ErrPanic}},
		"Snapshot fails": {func(r *recorder) { r.onTake = func() error { return errTest } },
			[]error{ErrBroken, errTest}},
		"Snapshot panics": {func(r *recorder) { r.onTake = func() error { panic("no") } },
			[]error{ErrBroken, ErrPanic}},
		"Role panics":       {func(r *recorder) { r.panics = "Role" }, []error{ErrBroken, ErrPanic, errTest}},
		"Leads panics":      {func(r *recorder) { r.panics = "Leads" }, []error{ErrBroken, ErrPanic, errTest}},
		"Confirmed panics":  {func(r *recorder) { r.panics = "Confirmed" }, []error{ErrBroken, ErrPanic, errTest}},
		"Configured panics": {func(r *recorder) { r.panics = "Configured" }, []error{ErrBroken, ErrPanic, errTest}},
		"TurnEnd panics":    {func(r *recorder) { r.panics = "TurnEnd" }, []error{ErrBroken, ErrPanic, errTest}},
		"Retired panics": {func(r *recorder) {
			r.onApply = func() error { return errTest }
			r.onRetired = func() { panic("again") }
		}, []error{ErrBroken, errTest}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startParty(t, 1, func(c *Config) { c.SnapshotBytes = 1 })
				l, app := p.logs[1], p.apps[1]
				app.view(tc.fail)
				l.Campaign()
				l.Propose(2, []byte("a"))
				synctest.Wait()
				l.Propose(2, []byte("a"))
				l.Confirm(2, 1)
				l.Change(2, add(2))
				wantRetired(t, l, app, tc.kinds...)
			})
		})
	}
	t.Run("Restore fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &party{t: t, logs: map[uint64]*Log{}, apps: map[uint64]*recorder{}}
			l := p.start(1, newTestStore(t, 1, []uint64{1}), func(c *Config) {
				c.Applier.(*recorder).onRestore = func() error { return errTest }
			})
			wantRetired(t, l, p.apps[1], ErrBroken, errTest)
		})
	})
}

// A heartbeat commits only what its receiver has acknowledged. If that is beyond the end of the
// log, the store was put back in an earlier state.
func TestAStoreThatWentBackIsRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, _ := p.lead()
		victim := l.Status().ID%3 + 1
		last := p.logs[victim].Status().Last
		beat := func(commit uint64) {
			p.logs[victim].Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(l.Status().ID), To: &victim,
				Term: new(l.Status().Term), Commit: &commit})
			synctest.Wait()
		}
		if beat(last); p.logs[victim].Status().Retired != nil {
			t.Fatalf("retired with %v", p.logs[victim].Status().Retired)
		}
		beat(last + 1)
		wantRetired(t, p.logs[victim], p.apps[victim], ErrWentBack)
		want := fmt.Sprintf("entry %d was stored, and the log ends at entry %d", last+1, last)
		if err := p.logs[victim].Status().Retired; !strings.Contains(err.Error(), want) || errors.Is(err, ErrPanic) {
			t.Errorf("retired with %v", err)
		}
		if next, _ := p.lead(); next != l {
			t.Error("the leader changed")
		}
	})
}

// A callback of the leader panics. The others elect another leader.
func TestPanicInACallbackRetiresTheVoterOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, func(c *Config) {
			c.Queued = func(batch []byte) {
				if string(batch) == "poison" {
					panic("out of order")
				}
			}
		})
		l, app := p.lead()
		l.Propose(l.Status().Term, []byte("poison"))
		wantRetired(t, l, app, ErrPanic)
		if err := l.Status().Retired; errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "out of order") {
			t.Errorf("retired with %v", err)
		}
		delete(p.logs, l.Status().ID)
		p.lead()
	})
}

func TestHungDiskHandsOverOrRetires(t *testing.T) {
	for _, heard := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			disks := map[uint64]*disk{}
			p := startParty(t, 3, func(c *Config) {
				disks[c.ID] = &disk{MemoryStore: c.Store.(*MemoryStore)}
				c.Store = disks[c.ID]
			})
			l, app := p.lead()
			id, term := l.Status().ID, l.Status().Term
			gate := make(chan struct{})
			disks[id].set(func(d *disk) { d.gate = gate })
			if !heard {
				p.losing(func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow })
			}
			l.Propose(term, []byte("a"))
			time.Sleep(700 * time.Millisecond)
			synctest.Wait()
			if heard {
				next, _ := p.lead()
				if next == l || l.Status().Retired != nil {
					t.Errorf("not handed over after 700 ms: %+v", l.Status())
				}
				close(gate)
				time.Sleep(time.Second)
				synctest.Wait()
				app.view(func(r *recorder) {
					if r.text != "a" {
						t.Errorf("with its disk back it applied %q", r.text)
					}
				})
				return
			}
			if st := l.Status(); !st.Leading || st.Retired != nil {
				t.Errorf("after 700 ms: %+v", st)
			}
			time.Sleep(2500 * time.Millisecond)
			synctest.Wait()
			if !errors.Is(l.Status().Retired, ErrHung) || len(app.retired) != 1 {
				t.Fatalf("retired with %v", l.Status().Retired)
			}
			before := time.Now()
			if err := l.Close(); !errors.Is(err, ErrHung) || time.Since(before) != maxCloseWait {
				t.Errorf("Close with a store that hangs: %v after %v", err, time.Since(before))
			}
			if disks[id].closed != 0 {
				t.Error("a store was closed while it was saving")
			}
			close(gate)
			synctest.Wait()
		})
	}
}

func TestCloseInEveryState(t *testing.T) {
	states := map[string]func(t *testing.T, p *party){
		"just started": func(t *testing.T, p *party) {},
		"idle":         func(t *testing.T, p *party) { synctest.Wait() },
		"campaigning": func(t *testing.T, p *party) {
			p.losing(func(*raftpb.Message) bool { return true })
			time.Sleep(3 * time.Second)
		},
		"leading": func(t *testing.T, p *party) { p.lead() },
		"with work in queue": func(t *testing.T, p *party) {
			l, _ := p.lead()
			for range 100 {
				l.Propose(l.Status().Term, make([]byte, 100))
				l.Confirm(l.Status().Term, 1)
			}
		},
		"transferring": func(t *testing.T, p *party) {
			p.losing(func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow })
			l, _ := p.lead()
			go func() {
				if err := l.Transfer(context.Background(), 0); !errors.Is(err, ErrClosed) {
					t.Errorf("a transfer that is cut short by Close: %v", err)
				}
			}()
			synctest.Wait()
		},
		"already": func(t *testing.T, p *party) { p.close() },
	}
	for name, reach := range states {
		for _, volatile := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // synctest.Test fails if a goroutine is leaked
					disks := map[uint64]*disk{}
					p := startParty(t, 3, func(c *Config) {
						disks[c.ID] = &disk{MemoryStore: c.Store.(*MemoryStore), inline: volatile}
						c.Store = disks[c.ID]
					})
					reach(t, p)
					var wg sync.WaitGroup
					for _, l := range p.logs {
						for range 3 {
							wg.Go(func() {
								if err := l.Close(); err != nil {
									t.Error(err)
								}
								if l.Propose(1, []byte("x")) {
									t.Error("a closed log takes a batch")
								}
								if err := l.Transfer(t.Context(), 0); !errors.Is(err, ErrClosed) {
									t.Errorf("Transfer after Close: %v", err)
								}
							})
						}
					}
					wg.Wait()
					for id, d := range disks {
						if d.closed != 1 {
							t.Errorf("store %d closed %d times", id, d.closed)
						}
						if got := p.apps[id].retired; len(got) != 0 {
							t.Errorf("closing log %d retired it: %v", id, got)
						}
					}
				})
			})
		}
	}
}

func TestStartRefuses(t *testing.T) {
	good := func() Config {
		return Config{Group: testGroup, ID: 1, Store: newTestStore(t, 1, []uint64{1}), Applier: &recorder{},
			Send: func([]*raftpb.Message) {}, SendSnapshot: func(*raftpb.Message, func(bool)) {}, Logger: quiet}
	}
	if _, err := Start(Config{ElectionTicks: 1, Tick: -1, HeartbeatTicks: -1, EntriesInFlight: -1, QueueBytes: -1,
		SnapshotBytes: -1}); err == nil {
		t.Error("an empty Config was taken")
	} else {
		for _, field := range strings.Fields("Group ID Store Applier Send SendSnapshot Tick HeartbeatTicks " +
			"EntriesInFlight QueueBytes SnapshotBytes") {
			if !strings.Contains(err.Error(), field+" ") {
				t.Errorf("the error does not name %s: %v", field, err)
			}
		}
	}
	for field, change := range map[string]func(c *Config){ // each alone, with no other field named
		"Group": func(c *Config) { c.Group = 0 }, "ID": func(c *Config) { c.ID = 0 },
		"Store": func(c *Config) { c.Store = nil }, "Applier": func(c *Config) { c.Applier = nil },
		"Send": func(c *Config) { c.Send = nil }, "SendSnapshot": func(c *Config) { c.SendSnapshot = nil },
		"Tick": func(c *Config) { c.Tick = -1 }, "HeartbeatTicks": func(c *Config) { c.HeartbeatTicks = -1 },
		"ElectionTicks":   func(c *Config) { c.ElectionTicks, c.HeartbeatTicks = 7, 7 },
		"SilenceTicks":    func(c *Config) { c.SilenceTicks, c.HeartbeatTicks = 4, 2 },
		"EntriesInFlight": func(c *Config) { c.EntriesInFlight = -1 },
		"QueueBytes":      func(c *Config) { c.QueueBytes = -1 }, "SnapshotBytes": func(c *Config) { c.SnapshotBytes = -1 },
	} {
		c := good()
		change(&c)
		says := map[string]string{"ElectionTicks": ": 7 is not above 7", "SilenceTicks": ": not 4"}[field]
		if _, err := Start(c); err == nil || !strings.HasPrefix(err.Error(), "raftlog: "+field+" ") ||
			strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"another group":  {func(c *Config) { c.Group++ }, ErrIdentity},
		"another ID":     {func(c *Config) { c.ID++ }, ErrIdentity},
		"an empty store": {func(c *Config) { c.Store = NewMemoryStore() }, ErrIdentity},
		"a bad store":    {func(c *Config) { c.Store = &disk{loadErr: errTest} }, ErrStorage},
		"a corrupt log": {func(c *Config) {
			c.Store.(*MemoryStore).state.HardState = &raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(9))}
		}, ErrCorrupt},
	} {
		c := good()
		tc.change(&c)
		if l, err := Start(c); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
			if err == nil {
				l.Close()
			}
		}
	}
}

func TestFoundAndJoinRefuse(t *testing.T) {
	used := newTestStore(t, 1, []uint64{1})
	if err := Found(used, testGroup, 1, testMembers(1), nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("founding twice: %v", err)
	}
	if err := Join(used, testGroup, 2); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("joining with a store in use: %v", err)
	}
	for name, f := range map[string]func(Store) error{
		"not a voter":   func(s Store) error { return Found(s, 1, 4, testMembers(1, 2, 3), nil) },
		"no voters":     func(s Store) error { return Found(s, 1, 4, nil, nil) },
		"twice":         func(s Store) error { return Found(s, 1, 1, testMembers(1, 1), nil) },
		"voter 0":       func(s Store) error { return Found(s, 1, 1, testMembers(0, 1), nil) },
		"local voter":   func(s Store) error { return Found(s, 1, 1, testMembers(1, ^uint64(0)), nil) },
		"group 0":       func(s Store) error { return Found(s, 0, 1, testMembers(1), nil) },
		"join group 0":  func(s Store) error { return Join(s, 0, 1) },
		"join as 0":     func(s Store) error { return Join(s, 1, 0) },
		"join as local": func(s Store) error { return Join(s, 1, ^uint64(0)) },
	} {
		s := NewMemoryStore()
		if f(s) == nil {
			t.Errorf("%s: taken", name)
		}
		if st, _ := s.Load(); !st.Empty() {
			t.Errorf("%s: refused and written all the same", name)
		}
	}
	if err := Found(&disk{loadErr: errTest}, 1, 1, testMembers(1), nil); !errors.Is(err, ErrStorage) {
		t.Errorf("a store that cannot be read: %v", err)
	}
	if err := Found(&disk{MemoryStore: NewMemoryStore(), err: errTest}, 1, 1, testMembers(1), nil); !errors.Is(err,
		ErrStorage) {
		t.Errorf("a store that cannot be written: %v", err)
	}
	voters := testMembers(3, 1, 2)
	if err := Found(NewMemoryStore(), 1, 1, voters, nil); err != nil || voters[0].ID != 3 {
		t.Errorf("voters in any order: %v, changed to %v", err, voters)
	}
}

func TestLogCloseDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowClose{MemoryStore: newTestStore(t, 1, []uint64{1}), free: make(chan struct{})}
		p := &party{t: t, logs: map[uint64]*Log{}, apps: map[uint64]*recorder{}}
		l := p.start(1, store, nil)
		began := time.Now()
		if err := l.Close(); !errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "store's Close") ||
			time.Since(began) > maxCloseWait {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
		close(store.free)
	})
}

type slowClose struct {
	*MemoryStore
	free chan struct{}
}

func (s *slowClose) Close() error {
	<-s.free
	return nil
}
