package raftlog

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func TestUnacceptableMessages(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	other := c.replicas[l.id%3].id
	term := l.role.Term
	entry := func(index, term uint64) *raftpb.Entry { return &raftpb.Entry{Index: &index, Term: &term} }
	msg := func(kind raftpb.MessageType, change func(*raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: kind.Enum(), From: &other, To: &l.id, Term: &term}
		change(m)
		return m
	}
	none := func(*raftpb.Message) {}
	bad := []*raftpb.Message{
		nil, {}, {To: &l.id},
		msg(raftpb.MsgVote, func(m *raftpb.Message) { m.Term = nil }),
		msg(raftpb.MsgHup, none), msg(raftpb.MsgBeat, none), msg(raftpb.MsgCheckQuorum, none),
		msg(raftpb.MsgSnapStatus, none),
		msg(raftpb.MsgUnreachable, none), msg(raftpb.MsgStorageAppendResp, none), msg(raftpb.MsgTransferLeader, none),
		msg(raftpb.MsgForgetLeader, none), msg(raftpb.MsgReadIndex, none), msg(raftpb.MsgReadIndexResp, none),
		msg(raftpb.MsgProp, func(m *raftpb.Message) { m.Term = nil }), msg(raftpb.MessageType(99), none),
		msg(raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = []byte("abc") }),
		msg(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Context = []byte("abc") }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.To = new(l.id + 9) }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.From = &l.id }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.From = new(^uint64(0)) }),
		msg(raftpb.MsgStorageApplyResp,
			func(m *raftpb.Message) { m.From = new(^uint64(0) - 1); m.Entries = []*raftpb.Entry{entry(99, 1)} }),
		msg(raftpb.MsgSnap, func(m *raftpb.Message) { m.Term = new(term + 1) }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Entries = new(term+1), []*raftpb.Entry{nil} }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) {
			m.Term, m.Entries = new(term+1),
				[]*raftpb.Entry{entry(2, 2), entry(4, 2)}
		}),
		msg(raftpb.MsgApp, func(m *raftpb.Message) {
			m.Term, m.Entries = new(term+1),
				[]*raftpb.Entry{entry(1, 9), entry(2, 8)}
		}),
		msg(raftpb.MsgApp, func(m *raftpb.Message) {
			m.Term, m.Entries = new(term+1),
				[]*raftpb.Entry{entry(1, term+2)}
		}),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.Term, m.Index = nil, new(uint64(1000)) }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.From, m.Index = new(uint64(0)), new(uint64(1000)) }),
	}
	want := l.core.Status()
	c.drain()
	for i, m := range bad {
		if acceptable(m, l.id) {
			t.Errorf("message %d (%v) is shown to raft", i, m)
			continue
		}
		l.core.Step(m)
		l.turn()
		if got := l.core.Status(); got.Term != want.Term || !got.Leading || l.core.Transferring() || len(c.wire) > 0 {
			t.Errorf("message %d (%v) changed the replica: %+v", i, m, got)
		}
	}
	c.settle(5)
	c.verify()
}

func TestNewCoreRefusesWhatIsNoLog(t *testing.T) {
	store := newTestStore(t, 1, []uint64{1, 2, 3})
	good, _ := store.Load()
	hs := func(term, commit uint64) *raftpb.HardState {
		return &raftpb.HardState{Term: &term, Commit: &commit, Vote: new(uint64)}
	}
	entry := func(index, term uint64) *raftpb.Entry { return &raftpb.Entry{Index: &index, Term: &term} }
	for name, tc := range map[string]struct {
		change func(*State)
		want   error
	}{
		"empty":              {func(s *State) { *s = State{} }, ErrIdentity},
		"no raft ID":         {func(s *State) { s.Identity.ID = 0 }, ErrIdentity},
		"commit beyond end":  {func(s *State) { s.HardState = hs(1, 2) }, ErrCorrupt},
		"no hard state":      {func(s *State) { s.HardState = nil }, ErrCorrupt},
		"gap":                {func(s *State) { s.Entries = []*raftpb.Entry{entry(3, 1)} }, ErrCorrupt},
		"gap behind":         {func(s *State) { s.Entries = []*raftpb.Entry{entry(2, 1), entry(4, 1)} }, ErrCorrupt},
		"term falls":         {func(s *State) { s.Entries = []*raftpb.Entry{entry(2, 0)} }, ErrCorrupt},
		"term above present": {func(s *State) { s.Entries = []*raftpb.Entry{entry(2, 2)} }, ErrCorrupt},
		"no configuration": {func(s *State) {
			s.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)),
				Term:      new(uint64(1)),
				ConfState: &raftpb.ConfState{VotersOutgoing: []uint64{1}, Learners: []uint64{1}}}}
		}, ErrCorrupt},
	} {
		st := good
		tc.change(&st)
		cfg := CoreConfig{State: st, Tick: testTick, ElectionTicks: 10, HeartbeatTicks: 1, EntriesInFlight: 1,
			QueueBytes: 1, SnapshotBytes: 1, Logger: quiet}
		if _, err := NewCore(cfg); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func TestLoggerPanicsAndNeverExits(t *testing.T) {
	var buf strings.Builder
	l := raftLogger{textLogger(&buf)}
	for name, f := range map[string]func(){
		"Panic": func() { l.Panic("a", 1) }, "Panicf": func() { l.Panicf("a %d", 1) },
		"Fatal": func() { l.Fatal("a", 1) }, "Fatalf": func() { l.Fatalf("a %d", 1) },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "raft: a") {
					t.Errorf("%s panicked with %q", name, p)
				}
			}()
			f()
			t.Errorf("%s returned", name)
		}()
	}
	l.Debugf("%d", 1)
	l.Infof("%d", 2)
	l.Warningf("%d", 3)
	l.Errorf("%d", 4)
	l.Debug(1)
	l.Info(2)
	l.Warning(5)
	l.Error(6)
	if got := strings.Count(buf.String(), "\n"); got != 2 {
		t.Errorf("raft wrote %d lines at level info, want 2 (its errors):\n%s", got, buf.String())
	}
}
