package raftlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (in *inbox) left() (names []string) {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() > 0 || f.Kind() != reflect.Slice && !f.IsZero() {
			names = append(names, fmt.Sprint(v.Type().Field(i).Name, " = ", f))
		}
	}
	return names
}

// wantHandled checks, between two turns, that the inbox is empty and keeps no handled message and
// no large buffer.
func wantHandled(t *testing.T, l *Log) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range []*inbox{&l.in, &l.spare} {
		if names := in.left(); len(names) > 0 {
			t.Errorf("a turn has left %v in an inbox", names)
		}
		held := func(a arrival) bool { return a.message != nil }
		if slices.ContainsFunc(in.messages[:cap(in.messages)], held) {
			t.Error("messages that were handled are held")
		}
		if n := cap(in.batches); n > queueKeepBytes {
			t.Errorf("%d bytes are kept for the batches of the next turn", n)
		}
	}
	if slices.ContainsFunc(l.out[:cap(l.out)], func(m *raftpb.Message) bool { return m != nil }) ||
		cap(l.out) > maxRecycle {
		t.Errorf("messages that were sent are held, or room for %d", cap(l.out))
	}
	if l.queued != 0 {
		t.Errorf("%d bytes of batches are counted, and none waits", l.queued)
	}
}

// The bounds of the inbox apply to each turn separately.
func TestEachTurnHasTheWholeInbox(t *testing.T) {
	stale := func(data []byte) *raftpb.Message { // of an earlier term, so it changes nothing
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(1)), Index: new(uint64(1)),
			LogTerm: new(uint64(1)), Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(1)),
				Data: data}}}
	}
	large := make([]byte, maxStepBytes*2/3)
	batch := make([]byte, 3<<20)
	refused := 0
	for name, bring := range map[string]func(l *Log){
		"bytes of messages": func(l *Log) { l.Step(stale(large)) },
		// Such a message must be accepted, because no smaller message replaces it.
		"a message above the bound": func(l *Log) { l.Step(stale(make([]byte, maxStepBytes+1))) },
		"a snapshot in messages": func(l *Log) {
			l.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
				Term: new(uint64(1)), Snapshot: &raftpb.Snapshot{Data: large}})
		},
		"messages": func(l *Log) {
			for range maxStepMessages * 2 / 3 {
				l.Step(stale(nil))
			}
		},
		"lost replicas": func(l *Log) {
			for id := range uint64(maxUnreachable * 2) {
				l.Unreachable(id + 10)
				l.PeerLost(id + 10)
			}
		},
		"batches": func(l *Log) {
			if !l.Propose(l.Status().Term, batch) {
				refused++
			}
		},
		"rounds":      func(l *Log) { l.Confirm(l.Status().Term, 1) },
		"an election": func(l *Log) { l.Campaign() },
		"transfers":   func(l *Log) { go l.Transfer(context.Background(), 99) },
		"changes":     func(l *Log) { l.Change(l.Status().Term, Change{Demote: []uint64{99}}) },
		"reports": func(l *Log) {
			l.put(func(in *inbox) {
				in.reports = append(in.reports,
					snapshotReport{99, 1, true})
			})
		},
		"batches of a term that is over": func(l *Log) {
			if !l.Propose(1, batch) {
				refused++
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startParty(t, 1, func(c *Config) { c.QueueBytes = 4 << 20 })
				l := p.logs[1]
				l.Campaign()
				synctest.Wait()
				refused = 0
				for range 4 {
					bring(l)
					time.Sleep(3 * l.cfg.Tick)
					wantHandled(t, l)
				}
				if st := l.Status(); st.Dropped != 0 || refused != 0 || st.Retired != nil || !st.Leading {
					t.Errorf("%d batches refused, status %+v", refused, st)
				}
			})
		})
	}
}

// Entries in flight count as lost after Unreachable and after PeerLost. After PeerLost for the
// leader, the voters must not wait for an election timeout.
func TestALogIsToldOfLostStreams(t *testing.T) {
	for name, tell := range map[string]func(l *Log, id uint64){"unreachable": (*Log).Unreachable,
		"gone": (*Log).PeerLost} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startParty(t, 3, nil)
				l, _ := p.lead()
				away := l.Status().ID%3 + 1
				time.Sleep(2 * l.cfg.Tick)
				synctest.Wait() // the owner is idle, so the test may read its core
				if pr := l.core.node.Status().Progress[away]; pr.State != tracker.StateReplicate {
					t.Fatalf("before: %v", pr)
				}
				p.losing(func(m *raftpb.Message) bool { return m.GetTo() == away })
				tell(l, away)
				synctest.Wait()
				if pr := l.core.node.Status().Progress[away]; pr.State != tracker.StateProbe {
					t.Errorf("what is in flight to a replica whose stream was lost counts as sent: %v", pr)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, _ := p.lead()
		id := l.Status().ID
		p.losing(func(m *raftpb.Message) bool { return m.GetTo() == id || m.GetFrom() == id })
		for other, log := range p.logs {
			if other != id {
				log.PeerLost(id)
			}
		}
		time.Sleep(l.cfg.Tick * time.Duration(l.cfg.ElectionTicks-2))
		if st := p.logs[id%3+1].Status(); st.Leader == id || st.Leader == 0 {
			t.Errorf("before the end of an election timeout after the leader has gone %d leads, in term %d",
				st.Leader, st.Term)
		}
	})
}

// TurnEnd is called only in turns that called the Applier or sent a message.
func TestTheEndOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, _ := p.lead()
		for range 5 { // only heartbeats and their answers are sent
			time.Sleep(l.cfg.Tick)
			synctest.Wait()
			for id, app := range p.apps {
				before := 0
				app.view(func(r *recorder) {
					if before = r.turns; r.open {
						t.Errorf("replica %d has sent something, and its turn has no end", id)
					}
				})
				p.logs[id].put(func(*inbox) {})
				synctest.Wait()
				app.view(func(r *recorder) {
					if r.turns != before {
						t.Errorf("a turn of replica %d in which nothing was handed out has an end", id)
					}
				})
			}
		}
	})
}

// held makes Apply block until the returned function is called. This also blocks the owner of
// the group's only log.
func held(t *testing.T, l *Log, app *recorder) (goOn func()) {
	t.Helper()
	reached, gate := make(chan struct{}), make(chan struct{})
	app.view(func(r *recorder) {
		first := sync.OnceFunc(func() { close(reached); <-gate })
		r.onApply = func() error {
			first()
			r.text = "" // to save memory
			return nil
		}
	})
	if !l.Propose(l.Status().Term, []byte("first")) {
		t.Fatal("not proposed")
	}
	<-reached
	return func() { close(gate) }
}

// Work beyond maxTurnRounds must continue in the next turn.
func TestManyRoundsWaitForNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, func(c *Config) { c.EntriesInFlight, c.SnapshotBytes = 1, 1<<30 })
		l, app := p.logs[1], p.apps[1]
		l.Campaign()
		synctest.Wait()
		goOn := held(t, l, app)
		const batches = maxTurnRounds + 8
		data := make([]byte, 600<<10) // so large that each batch has its own entry
		for range batches {
			if !l.Propose(l.Status().Term, data) {
				t.Fatal("not proposed")
			}
		}
		began := time.Now()
		goOn()
		synctest.Wait()
		if n := l.Status().Applied; time.Since(began) > 0 || l.Status().Queued != 0 {
			t.Errorf("applied up to %d, %d bytes wait for a tick", n, l.Status().Queued)
		}
	})
}

// The log must report the first cause of its end and keep nothing of its input.
func TestALogThatEndsInTheMiddleOfATurn(t *testing.T) {
	for name, row := range map[string]struct {
		close bool
		kinds []error
	}{
		"by a failure":                       {kinds: []error{ErrStorage, errTest}},
		"by Close, and then comes a failure": {close: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{inline: true}
				p := startParty(t, 1, func(c *Config) { d.MemoryStore, c.Store = c.Store.(*MemoryStore), d })
				l, app := p.logs[1], p.apps[1]
				l.Campaign()
				synctest.Wait()
				gate := make(chan struct{})
				d.set(func(d *disk) { d.gate, d.err = gate, errTest })
				term := l.Status().Term
				l.Propose(term, []byte("a"))
				synctest.Wait()
				transferred := make(chan error, 1)
				go func() { transferred <- l.Transfer(context.Background(), 0) }()
				l.Propose(term, make([]byte, 1000))
				l.Confirm(term, 1)
				beat := raftpb.MsgHeartbeat
				l.Step(&raftpb.Message{Type: &beat, From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(1))})
				synctest.Wait()
				closed := make(chan error, 1)
				if row.close {
					go func() { closed <- l.Close() }()
					synctest.Wait()
				}
				close(gate)
				synctest.Wait()
				l.mu.Lock()
				if names := append(l.in.left(), l.spare.left()...); len(names) > 0 || l.queued != 0 ||
					cap(l.spare.batches) > 0 {
					t.Errorf("it keeps %v and %d bytes of batches", names, l.queued)
				}
				l.mu.Unlock()
				if !row.close {
					if err := <-transferred; !errors.Is(err, ErrStorage) {
						t.Errorf("a transfer that waited: %v", err)
					}
					wantRetired(t, l, app, row.kinds...)
					return
				}
				if err := <-transferred; !errors.Is(err, ErrClosed) {
					t.Errorf("a transfer that waited: %v", err)
				}
				if err := <-closed; err != nil || len(app.retired) > 0 || l.Status().Retired != nil {
					t.Errorf("Close: %v; the Applier was told %v", err, app.retired)
				}
			})
		})
	}
}

func TestAPanicBehindASaveIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		p := startParty(t, 3, func(c *Config) {
			c.Store = &disk{MemoryStore: c.Store.(*MemoryStore), inline: true}
			send := c.Send
			c.Send = func(all []*raftpb.Message) {
				if c.ID == 1 && armed.Load() {
					panic(errTest)
				}
				send(all)
			}
		})
		p.logs[1].Campaign()
		p.lead()
		l, app := p.logs[1], p.apps[1]
		armed.Store(true)
		l.Propose(l.Status().Term, []byte("a"))
		wantRetired(t, l, app, ErrPanic, errTest)
		if err := l.Status().Retired; errors.Is(err, ErrStorage) || errors.Is(err, ErrBroken) {
			t.Errorf("retired with %v", err)
		}
	})
}

func TestTicksPass(t *testing.T) {
	slow.UnderRace(t)
	for name, row := range map[string]struct {
		replicas int
		begin    func(l *Log)
		work     func(l *Log) // called every tenth of a tick
	}{
		"beside turns": {replicas: 3, begin: func(*Log) {},
			work: func(l *Log) { l.Propose(l.Status().Term, []byte("a")) }},
		"at rest":      {replicas: 3, begin: func(*Log) {}, work: func(*Log) {}},
		"after a rest": {replicas: 1, begin: func(l *Log) { l.Change(l.Status().Term, add(2)) }, work: func(*Log) {}},
		"after a rest, beside turns": {
			replicas: 1, begin: func(l *Log) { l.Change(l.Status().Term, add(2)) },
			work: func(l *Log) { l.Propose(l.Status().Term, []byte("a")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := startParty(t, row.replicas, nil)
				p.logs[1].Campaign()
				l, _ := p.lead()
				for range 3 {
					time.Sleep(100 * l.cfg.Tick)
					var beats atomic.Int64
					p.losing(func(m *raftpb.Message) bool {
						if m.GetType() == raftpb.MsgHeartbeat && m.GetTo() == l.Status().ID%3+1 {
							beats.Add(1)
						}
						return false
					})
					row.begin(l)
					const ticks = 50
					for range ticks * 10 {
						row.work(l)
						time.Sleep(l.cfg.Tick / 10)
					}
					if want := int64(ticks / l.cfg.HeartbeatTicks); beats.Load() < want*8/10 {
						t.Fatalf("%d heartbeats in %d ticks", beats.Load(), ticks)
					}
				}
			})
		})
	}
}

func TestEachDuplicateIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[*raftpb.Message]bool{}
		p := startParty(t, 3, func(c *Config) {
			c.SendDuplicates = func(all []*raftpb.Message) {
				mu.Lock()
				defer mu.Unlock()
				for _, m := range all {
					if m == nil || sent[m] {
						t.Errorf("sent again: %v", m)
					}
					sent[m] = true
				}
			}
		})
		l, _ := p.lead()
		for range 50 {
			l.Propose(l.Status().Term, []byte("a"))
			time.Sleep(l.cfg.Tick)
		}
		synctest.Wait()
		for _, l := range p.logs {
			held := func(m *raftpb.Message) bool { return m != nil }
			if all := l.duplicates; len(all) > 0 || slices.ContainsFunc(all[:cap(all)], held) {
				t.Errorf("%d duplicates that were sent are held", len(all))
			}
		}
		if len(sent) < 50 {
			t.Errorf("only %d duplicates", len(sent))
		}
	})
}
