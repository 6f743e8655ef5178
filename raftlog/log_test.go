package raftlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

func TestLoneLogLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, nil)
		l, app := p.logs[1], p.apps[1]
		before := time.Now()
		l.Campaign()
		synctest.Wait()
		if !app.leads(2) || time.Since(before) != 0 {
			t.Fatalf("no lead at once: %+v", l.Status())
		}
		l.Confirm(2, 7)
		l.Propose(2, []byte("a"))
		l.Propose(2, []byte("b"))
		l.Propose(1, []byte("x"))
		synctest.Wait()
		app.view(func(r *recorder) {
			if r.text != "ab" || r.entries != 1 || fmt.Sprint(r.confirmed) != "[7]" {
				t.Errorf("applied %q in %d entries, confirmed %v", r.text, r.entries, r.confirmed)
			}
			want := []Role{{Term: 1, LastTerm: 1, LastIndex: 1}, {Term: 2, LastTerm: 1, LastIndex: 1},
				{Term: 2, Leader: 1, Leading: true}}
			if fmt.Sprint(r.roles) != fmt.Sprint(want) || fmt.Sprint(r.restored) != "[1]" ||
				fmt.Sprint(r.led) != "[2]" {
				t.Errorf("roles %v, restored %v, led %v", r.roles, r.restored, r.led)
			}
			if r.open || r.turns == 0 {
				t.Error("calls without an end of their turn")
			}
		})
	})
}

func TestApplierMayCallTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, nil)
		l, app := p.logs[1], p.apps[1]
		app.view(func(r *recorder) {
			r.onApply = func() error {
				if r.entries < 9 {
					l.Propose(2, []byte("x"))
					l.Confirm(2, uint64(r.entries))
				}
				if st := l.Status(); st.Retired != nil {
					t.Error(st.Retired)
				}
				return nil
			}
		})
		l.Campaign()
		synctest.Wait()
		l.Propose(2, []byte("x"))
		synctest.Wait()
		app.view(func(r *recorder) {
			if r.text != "xxxxxxxxxx" || len(r.confirmed) != 9 {
				t.Errorf("applied %q, confirmed %v", r.text, r.confirmed)
			}
		})
	})
}

func TestThreeLogsElectApplyConfirm(t *testing.T) {
	for _, volatile := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := startParty(t, 3, func(c *Config) {
				if !volatile {
					c.Store = &disk{MemoryStore: c.Store.(*MemoryStore), delay: 3 * time.Millisecond}
				}
			})
			l, app := p.lead()
			term := l.Status().Term
			want := ""
			for i := range 200 {
				s := fmt.Sprintf("%d.", i)
				want += s
				if !l.Propose(term, []byte(s)) {
					t.Fatal("a batch was refused")
				}
				l.Confirm(term, uint64(i))
			}
			time.Sleep(time.Second)
			synctest.Wait()
			for id, a := range p.apps {
				a.view(func(r *recorder) {
					if r.text != want {
						t.Errorf("replica %d applied %q", id, r.text)
					}
					if r.entries > 100 {
						t.Errorf("200 batches in %d entries", r.entries)
					}
				})
			}
			app.view(func(r *recorder) {
				if len(r.confirmed) != 200 || r.confirmed[199] != 199 {
					t.Errorf("confirmed %v", r.confirmed)
				}
			})
			if st := l.Status(); st.Queued != 0 || st.InFlight != 0 || st.Applied != st.Commit ||
				st.Last != st.Commit || st.ID != st.Leader {
				t.Errorf("status at rest: %+v", st)
			}
		})
	}
}

func TestSilentLeaderIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, app := p.lead()
		old := l.Status()
		p.losing(func(m *raftpb.Message) bool { return m.GetFrom() == old.ID || m.GetTo() == old.ID })
		l.Propose(old.Term, []byte("lost"))
		l.Confirm(old.Term, 1)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if l.Status().Leading {
			t.Error("a leader without a majority still leads")
		}
		p.losing(nil)
		next, _ := p.lead()
		if st := next.Status(); st.Term <= old.Term || st.ID == old.ID {
			t.Fatalf("next leader: %+v", st)
		}
		next.Propose(next.Status().Term, []byte("kept"))
		time.Sleep(time.Second)
		synctest.Wait()
		app.view(func(r *recorder) {
			if r.text != "kept" || len(r.confirmed) != 0 {
				t.Errorf("the old leader applied %q and confirmed %v", r.text, r.confirmed)
			}
		})
	})
}

func TestTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, _ := p.lead()
		id := l.Status().ID
		if err := l.Transfer(t.Context(), 0); err != nil {
			t.Fatalf("transfer to the best: %v", err)
		}
		next, _ := p.lead()
		if next == l {
			t.Fatal("it still leads")
		}
		if err := l.Transfer(t.Context(), 0); !errors.Is(err, ErrNotLeading) {
			t.Errorf("transfer by a follower: %v", err)
		}
		if err := next.Transfer(t.Context(), id); err != nil {
			t.Errorf("transfer back: %v", err)
		}
		if back, _ := p.lead(); back != l {
			t.Errorf("replica %d leads, want %d", back.Status().ID, id)
		}
		for _, to := range []uint64{id, 99} {
			if err := l.Transfer(t.Context(), to); !errors.Is(err, ErrTransfer) {
				t.Errorf("transfer to %d: %v", to, err)
			}
		}
	})
}

// A transfer fails if another voter than its own becomes the leader, by a later transfer.
func TestTransferThatAnotherVoterWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, _ := p.lead()
		var others []uint64
		for _, id := range l.Survey().Config.Voters {
			if id != l.Status().ID {
				others = append(others, id)
			}
		}
		p.losing(func(m *raftpb.Message) bool {
			return m.GetType() == raftpb.MsgTimeoutNow && m.GetTo() == others[0]
		})
		first := make(chan error, 1)
		go func() { first <- l.Transfer(t.Context(), others[0]) }()
		synctest.Wait()
		if err := l.Transfer(t.Context(), others[1]); err != nil {
			t.Errorf("the voter that leads: %v", err)
		}
		if now, _ := p.lead(); now.Status().ID != others[1] {
			t.Errorf("replica %d leads, want %d", now.Status().ID, others[1])
		}
		if err := <-first; !errors.Is(err, ErrTransfer) {
			t.Errorf("the voter that does not lead: %v", err)
		}
	})
}

func TestTransferWithoutASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, app := p.lead()
		term := l.Status().Term
		p.losing(func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := l.Transfer(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: %v", err)
		}
		l.Propose(term, []byte("waits"))
		before := time.Now()
		err := l.Transfer(t.Context(), 0)
		if took := time.Since(before); !errors.Is(err, ErrTransfer) || took > time.Second {
			t.Errorf("after %v: %v, want ErrTransfer within an election timeout", took, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		app.view(func(r *recorder) {
			if r.text != "waits" {
				t.Errorf("applied %q; a batch must wait for the end of a transfer", r.text)
			}
		})
	})
}

func TestSnapshotIsSentAndItsFateReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, func(c *Config) { c.SnapshotBytes, c.KeepEntries = 1000, -1 })
		l, app := p.lead()
		away := l.Status().ID%3 + 1
		p.losing(func(m *raftpb.Message) bool { return m.GetTo() == away || m.GetFrom() == away })
		for range 50 {
			l.Propose(l.Status().Term, []byte(strings.Repeat("x", 100)))
			synctest.Wait()
		}
		sent := 0
		p.mu.Lock()
		p.snap = func(m *raftpb.Message, done func(bool)) {
			sent++
			switch sent {
			case 1: // lost, and reported immediately on the owner goroutine
				done(false)
			case 2: // lost, and reported 200 ms later and twice
				time.AfterFunc(200*time.Millisecond, func() { done(false); done(false) })
			default:
				go func() {
					p.logs[m.GetTo()].Step(m)
					done(true)
				}()
			}
		}
		p.mu.Unlock()
		appends := 0
		p.losing(func(m *raftpb.Message) bool {
			if m.GetTo() == away && m.GetType() == raftpb.MsgApp && (sent == 1 || sent == 2) {
				appends++
			}
			return false
		})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if appends > 1 { // one append is allowed: it may carry the commit index
			t.Errorf("%d appends were sent behind a snapshot that was lost", appends)
		}
		want := ""
		app.view(func(r *recorder) { want = r.text })
		p.apps[away].view(func(r *recorder) {
			if r.text != want || len(want) != 5000 || len(r.restored) < 2 {
				t.Errorf("follower holds %d bytes of %d, restored %v", len(r.text), len(want), r.restored)
			}
		})
		if sent != 3 || l.Status().Snapshots == 0 {
			t.Errorf("%d snapshots sent, want 3; %d taken", sent, l.Status().Snapshots)
		}
	})
}

func TestRestartFromTheStore(t *testing.T) {
	for _, size := range []int{100, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			p := startParty(t, 1, func(c *Config) { c.SnapshotBytes = size })
			l := p.logs[1]
			l.Campaign()
			synctest.Wait()
			for i := range 20 {
				l.Propose(2, fmt.Appendf(nil, "%02d.", i))
				synctest.Wait()
			}
			want := ""
			p.apps[1].view(func(r *recorder) { want = r.text })
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again := p.start(1, l.cfg.Store, nil)
			again.Campaign()
			synctest.Wait()
			p.apps[1].view(func(r *recorder) {
				if r.text != want || len(r.text) != 60 {
					t.Errorf("after a restart %q, want %q", r.text, want)
				}
			})
		})
	}
}

func TestProposeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		p := startParty(t, 1, func(c *Config) {
			d.MemoryStore = c.Store.(*MemoryStore)
			c.Store, c.QueueBytes = d, 1000
		})
		l := p.logs[1]
		l.Campaign()
		time.Sleep(time.Second)
		gate := make(chan struct{})
		d.set(func(d *disk) { d.gate = gate })
		taken := 0
		for range 100 {
			if l.Propose(2, make([]byte, 100)) {
				taken++
			}
			synctest.Wait()
		}
		// Two entries of one batch each are under way, and ten batches wait.
		if st := l.Status(); taken != 12 || st.InFlight != 2 || st.Queued != 1000 {
			t.Errorf("%d batches taken, status %+v", taken, st)
		}
		d.set(func(d *disk) { d.gate = nil })
		close(gate)
		synctest.Wait()
		if l.Propose(2, make([]byte, 1001)) || !l.Propose(2, make([]byte, 1000)) {
			t.Error("the room has not come back, or there is more of it than there should be")
		}
		l.Propose(1, make([]byte, 10)) // a batch of another term, so its room in the queue is freed
		synctest.Wait()
		if l.mu.Lock(); l.queued != 0 {
			t.Errorf("%d bytes are counted and not there", l.queued)
		}
		l.mu.Unlock()
	})
}

func TestMessagesComeBeforeTime(t *testing.T) {
	for seed := range uint64(20) {
		cryptotest.SetGlobalRandom(t, seed)
		var now clock.Manual
		store := newTestStore(t, 1, []uint64{1, 2, 3})
		st, _ := store.Load()
		cfg := Config{Store: store, Applier: &recorder{}, Clock: &now, Logger: quiet, Send: func(ms []*raftpb.Message) {
			t.Errorf("seed %d: the follower sent %v", seed, ms[0].GetType())
		}}.withDefaults()
		core, err := NewCore(CoreConfig{State: st, Tick: cfg.Tick, ElectionTicks: 10, HeartbeatTicks: 1,
			EntriesInFlight: 1,
			QueueBytes:      1, SnapshotBytes: 1 << 20, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		l := &Log{cfg: cfg, core: core, wake: make(chan struct{}, 1)}
		for _, ticks := range []time.Duration{5, 4} {
			now.Advance(ticks * cfg.Tick)
			l.turn(&inbox{}, true, 0)
		}
		now.Advance(5 * cfg.Tick)
		l.cfg.Send = func(ms []*raftpb.Message) {
			if got := ms[0].GetType(); got != raftpb.MsgHeartbeatResp {
				t.Errorf("seed %d: a stalled follower answers its leader with %v", seed, got)
			}
		}
		heartbeat := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(1))}
		l.turn(&inbox{messages: []arrival{{message: heartbeat}}}, true, 0)
		if got := core.Role(); got != (Role{Term: 1, Leader: 2}) {
			t.Errorf("seed %d: role %v", seed, got)
		}
	}
}

func TestStepIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d := &disk{inline: true}
		p := startParty(t, 3, func(c *Config) {
			if c.ID == 1 {
				d.MemoryStore = c.Store.(*MemoryStore)
				c.Store = d
			}
		})
		p.losing(func(m *raftpb.Message) bool { return true })
		l := p.logs[1]
		app := func(index uint64, data []byte) *raftpb.Message {
			return &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
				Term:  new(uint64(1)),
				Index: new(index - 1), LogTerm: new(uint64(1)),
				Entries: []*raftpb.Entry{{Index: &index, Term: new(uint64(1)), Data: data}}}
		}
		synctest.Wait()
		d.set(func(d *disk) { d.gate = gate })
		l.Step(app(2, nil)) // the owner is blocked in Save
		synctest.Wait()
		big := make([]byte, maxStepBytes/2)
		for range 3 {
			l.Step(app(3, big))
		}
		l.Step(&raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(1)), Snapshot: &raftpb.Snapshot{Data: big}})
		if got := l.Status().Dropped; got != 3 {
			t.Errorf("%d of three large messages and a snapshot dropped, want 3", got)
		}
		for range 5000 {
			l.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
				Term: new(uint64(1))})
		}
		if got := l.Status().Dropped; got != 3+5000-(maxStepMessages-1) {
			t.Errorf("%d messages dropped, want all but %d", got, maxStepMessages)
		}
		for id := range uint64(1000) {
			for range 2 { // the second report of the same replica is ignored
				l.Unreachable(id)
				l.PeerLost(id)
			}
		}
		if l.mu.Lock(); len(l.in.unreachable) != maxUnreachable || len(l.in.lost) != maxUnreachable ||
			l.in.lost[maxUnreachable-1] != maxUnreachable-1 || l.in.unreachable[maxUnreachable-1] != maxUnreachable-1 {
			t.Errorf("%d peers reported unreachable and %d gone, want the first %d of each", len(l.in.unreachable),
				len(l.in.lost), maxUnreachable)
		}
		l.mu.Unlock()
		dropped := l.Status().Dropped
		close(gate)
		synctest.Wait()
		if got := l.Status().Dropped; got != dropped {
			t.Errorf("%d messages dropped, and after a turn it is said that it were %d", dropped, got)
		}
		synctest.Wait()
		if st := l.Status(); st.Retired != nil || st.Last != 3 {
			t.Errorf("afterwards: %+v", st)
		}
	})
}
