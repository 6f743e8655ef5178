package raftlog

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// lone returns a lone voter that leads, and has nothing to do.
func lone(t *testing.T, change ...func(*CoreConfig)) (*cluster, *replica) {
	t.Helper()
	c := newCluster(t, 1, 1, change...)
	r := c.replicas[0]
	r.core.Campaign()
	r.turn()
	c.drain()
	if r.leading == 0 {
		t.Fatalf("a lone voter that campaigns does not lead at once: %+v", r.core.Status())
	}
	return c, r
}

func TestLoneVoterLeadsWithoutWaiting(t *testing.T) {
	c, r := lone(t)
	if got := r.core.Status(); got.Term != 2 || !got.Leading || got.Applied != 2 || got.Last != 2 || len(got.Voters) != 1 {
		t.Errorf("status %+v, want a leader of term 2 with its first entry, at index 2, applied", got)
	}
	c.verify()
}

// Raft answers a lone voter's read request at once, with whatever it knew to be committed when it started.
func TestConfirmWaitsForOwnFirstEntry(t *testing.T) {
	c := newCluster(t, 1, 1)
	r := c.replicas[0]
	r.core.Campaign()
	r.turn()
	for !r.role.Leading {
		r.sync()
	}
	r.confirm(1)
	r.turn()
	if len(r.done) != 0 || r.leading != 0 {
		t.Fatalf("round confirmed before the first entry of the term is durable and applied")
	}
	r.propose()
	r.turn()
	c.drain()
	if len(r.done) != 1 || r.leading == 0 {
		t.Errorf("round not confirmed afterwards")
	}
	c.verify()
}

func TestConfirmedInOrderAfterApply(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	for round := range uint64(5) {
		l.propose()
		l.confirm(round)
	}
	l.turn()
	if n := heartbeats(c.wire); n != 2 {
		t.Errorf("five rounds of one turn sent %d heartbeats, want one to each of two followers", n)
	}
	c.drain()
	c.settle(2)
	if want := []uint64{0, 1, 2, 3, 4}; len(l.done) != len(want) || l.done[4] != 4 {
		t.Errorf("confirmed %v, want %v", l.done, want)
	}
	c.verify()
}

func heartbeats(ms []*raftpb.Message) (n int) {
	for _, m := range ms {
		if m.GetType() == raftpb.MsgHeartbeat {
			n++
		}
	}
	return n
}

func TestRoundsAreForgottenWithTheLead(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	l.confirm(1)
	l.turn()
	c.wire = nil // nobody hears of it
	c.isolate(l.id)
	for range 40 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		l.turn()
	}
	if l.role.Leading {
		t.Fatal("an isolated leader leads on")
	}
	c.settle(60)
	if len(l.done) != 0 {
		t.Errorf("a round of the lost lead was confirmed")
	}
	c.verify()
}

// isolate cuts all ways to and from a replica.
func (c *cluster) isolate(id uint64) {
	for _, r := range c.replicas {
		c.cut[[2]uint64{id, r.id}], c.cut[[2]uint64{r.id, id}] = true, true
	}
}

func TestBatchesThatWaitShareAnEntry(t *testing.T) {
	for _, inFlight := range []int{1, 2} {
		c, r := lone(t, func(cfg *CoreConfig) { cfg.EntriesInFlight = inFlight })
		first := r.core.Status().Applied
		for range 10 {
			r.propose() // the disk is busy with the first of them from here on
			r.turn()
		}
		if got := r.core.Status().InFlight; got != inFlight {
			t.Errorf("%d entries in flight, want %d", got, inFlight)
		}
		c.drain()
		if entries := c.check.last - first; c.check.next[2] != 10 || entries != uint64(inFlight+1) {
			t.Errorf("%d in flight: %d batches in %d entries, want 10 in %d", inFlight, c.check.next[2], entries, inFlight+1)
		}
		if got := r.core.Status(); got.InFlight != 0 || got.Queued != 0 {
			t.Errorf("left behind: %+v", got)
		}
		c.verify()
	}
}

func TestLargeQueueMakesSeveralEntries(t *testing.T) {
	c, r := lone(t, func(cfg *CoreConfig) { cfg.EntryBytes = 4 * batchBytes })
	before := r.core.Status().Applied
	for range 20 {
		r.propose()
	}
	r.turn()
	c.drain()
	if got := c.check.last - before; got != 5 {
		t.Errorf("20 batches with room for 4 in an entry made %d entries, want 5", got)
	}
	c.verify()
}

func TestQueueIsBounded(t *testing.T) {
	_, r := lone(t, func(cfg *CoreConfig) { cfg.QueueBytes = 100 })
	if r.core.Propose(2, make([]byte, 101)) {
		t.Errorf("a batch larger than the queue was taken")
	}
	if !r.core.Propose(2, make([]byte, 60)) || r.core.Propose(2, make([]byte, 60)) {
		t.Errorf("the queue does not end at its bound")
	}
	if r.core.Propose(1, nil) || r.core.Propose(3, nil) {
		t.Errorf("a batch of another term was taken")
	}
	r.core.Turn()
	if got := r.core.Queued(); got != 0 {
		t.Errorf("%d bytes are still queued after they were proposed", got)
	}
}

func TestEntryIsNotAliasedToTheBatch(t *testing.T) {
	c, r := lone(t)
	buf := batch{2, 0}.encode()
	for n := range uint64(3) {
		copy(buf, batch{2, n}.encode())
		r.core.Propose(2, buf)
		clear(buf)
		r.turn()
	}
	c.drain()
	c.verify()
	if c.check.next[2] != 3 {
		t.Errorf("%d batches applied, want 3", c.check.next[2])
	}
}

// A batch decided on in term 2 is thrown away with the lead, and does not surface when the same replica leads again.
func TestBatchNeverEntersAnotherTerm(t *testing.T) {
	c := newCluster(t, 5, 3)
	l := c.elect()
	old := l.role.Term
	c.isolate(l.id)
	for range 8 { // two are proposed, the others wait
		l.propose()
		l.turn()
	}
	for range 40 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		l.turn()
	}
	if got := l.core.Queued(); l.role.Leading || got != 0 {
		t.Fatalf("after the lead is lost %d bytes are queued", got)
	}
	clear(c.cut)
	c.settle(40)
	for l.leading == 0 {
		if now := c.leader(); now != nil && now != l {
			now.core.Transfer(l.id)
			now.turn()
		}
		c.settle(5)
	}
	for index, e := range c.check.entries {
		if len(e.data) > 0 && decodeBatch([]byte(e.data)).term == old && e.term != old {
			t.Errorf("entry %d of term %d holds a batch of term %d", index, e.term, old)
		}
	}
	if !l.propose() {
		t.Error("the new lead takes no batch")
	}
	l.turn()
	c.settle(3)
	if c.check.next[l.role.Term] != 1 {
		t.Error("the new lead applies no batch: the entries in flight of the old one still count")
	}
	c.verify()
}

// Role changes within one turn, between two outputs: what is queued in between must go, too.
func TestQueueGoesWithATermThatNobodySaw(t *testing.T) {
	c := newCluster(t, 5, 3, func(cfg *CoreConfig) { cfg.EntriesInFlight = 1 })
	l := c.elect()
	term := l.role.Term
	l.propose()
	l.turn()
	l.propose() // waits
	other := c.replicas[l.id%3].id
	l.core.Step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: &other, To: &l.id, Term: new(term + 5), Commit: new(uint64)})
	if l.core.Queued() != 0 {
		t.Errorf("a batch outlives its term")
	}
	if l.core.Propose(term, []byte("late")) {
		t.Errorf("a batch of the old term was taken")
	}
}

func TestQueueWaitsWhileRaftRefuses(t *testing.T) {
	t.Run("transfer", func(t *testing.T) {
		c := newCluster(t, 5, 3)
		l := c.elect()
		to := c.replicas[l.id%3]
		c.cut[[2]uint64{l.id, to.id}] = true
		if err := l.core.Transfer(to.id); err != nil {
			t.Fatal(err)
		}
		l.propose()
		l.turn()
		if got := l.core.Status(); got.Queued != batchBytes || !l.core.Transferring() {
			t.Errorf("during a transfer: %+v", got)
		}
		delete(c.cut, [2]uint64{l.id, to.id})
		c.wire = nil
		for range 12 { // longer than an election timeout: the transfer has failed
			l.now = l.now.Add(testTick)
			l.core.Tick(l.now)
			l.turn()
			c.drain()
		}
		if c.check.next[l.role.Term] != 1 || !l.role.Leading {
			t.Errorf("the batch did not get in after the transfer failed")
		}
		c.verify()
	})
	t.Run("size", func(t *testing.T) {
		c, r := lone(t, func(cfg *CoreConfig) { cfg.UncommittedBytes, cfg.EntriesInFlight = 2*batchBytes, 100 })
		for range 10 {
			r.propose()
			r.turn()
		}
		if got := r.core.Status(); got.InFlight != 2 || got.Queued != 8*batchBytes {
			t.Errorf("with room for two uncommitted batches: %+v", got)
		}
		c.drain()
		if c.check.next[2] != 10 {
			t.Errorf("%d batches applied, want 10", c.check.next[2])
		}
		c.verify()
	})
}

// A commit index alone must not cost a sync: it comes with every entry.
func TestCommitAloneIsNotSaved(t *testing.T) {
	c := newCluster(t, 1, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l := c.elect()
	c.settle(5)
	saves := map[uint64]int{}
	for range 10 {
		l.propose()
		l.turn()
		for busy := true; busy; {
			busy = false
			for _, r := range c.replicas {
				if r.save != nil {
					saves[r.id]++
					r.sync()
					busy = true
				}
			}
			for len(c.wire) > 0 {
				c.deliver(take(&c.wire, 0))
				busy = true
			}
		}
	}
	for id, n := range saves {
		if n != 10 {
			t.Errorf("replica %d saved %d times for 10 entries", id, n)
		}
	}
	c.verify()
}

func TestTicksFollowElapsedTime(t *testing.T) {
	c := newCluster(t, 1, 3)
	f := c.replicas[0]
	f.core.Tick(f.now.Add(testTick / 2))
	if got := f.core.NextTick().Sub(f.now); got != testTick {
		t.Errorf("after half a tick the next is due at %v, want %v", got, testTick)
	}
	for range 50 { // a follower that is never run for less than a minute
		f.now = f.now.Add(6000 * testTick)
		f.core.Tick(f.now)
		f.turn()
		if len(c.wire) > 0 {
			break
		}
		f.core.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: &f.id, Term: new(uint64(1)), Commit: new(uint64(1))})
		f.turn()
		c.wire = nil
	}
	if f.role.Term != 1 || f.role.Leader != 2 {
		t.Errorf("a stalled follower that hears its leader after each stall campaigned: %+v", f.role)
	}
	for range 2 {
		f.now = f.now.Add(6000 * testTick)
		f.core.Tick(f.now)
	}
	f.core.Tick(f.now.Add(-1000)) // a clock that goes back is no tick
}

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
		msg(raftpb.MsgHup, none), msg(raftpb.MsgBeat, none), msg(raftpb.MsgCheckQuorum, none), msg(raftpb.MsgSnapStatus, none),
		msg(raftpb.MsgUnreachable, none), msg(raftpb.MsgStorageAppendResp, none), msg(raftpb.MsgTransferLeader, none),
		msg(raftpb.MsgForgetLeader, none), msg(raftpb.MsgReadIndex, none), msg(raftpb.MsgReadIndexResp, none),
		msg(raftpb.MsgProp, func(m *raftpb.Message) { m.Term = nil }), msg(raftpb.MessageType(99), none),
		msg(raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = []byte("abc") }),
		msg(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Context = []byte("abc") }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.To = new(l.id + 9) }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.From = &l.id }),
		msg(raftpb.MsgAppResp, func(m *raftpb.Message) { m.From = new(^uint64(0)) }),
		msg(raftpb.MsgStorageApplyResp, func(m *raftpb.Message) { m.From = new(^uint64(0) - 1); m.Entries = []*raftpb.Entry{entry(99, 1)} }),
		msg(raftpb.MsgSnap, func(m *raftpb.Message) { m.Term = new(term + 1) }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Entries = new(term+1), []*raftpb.Entry{nil} }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Entries = new(term+1), []*raftpb.Entry{entry(2, 2), entry(4, 2)} }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Entries = new(term+1), []*raftpb.Entry{entry(1, 9), entry(2, 8)} }),
		msg(raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Entries = new(term+1), []*raftpb.Entry{entry(1, term+2)} }),
	}
	want := l.core.Status()
	for i, m := range bad {
		l.core.Step(m)
		l.turn()
		if got := l.core.Status(); got.Term != want.Term || !got.Leading {
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
			s.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)), Term: new(uint64(1)),
				ConfState: &raftpb.ConfState{VotersOutgoing: []uint64{1}, Learners: []uint64{1}}}}
		}, ErrCorrupt},
	} {
		st := good
		tc.change(&st)
		cfg := CoreConfig{State: st, Tick: testTick, ElectionTicks: 10, HeartbeatTicks: 1, EntriesInFlight: 1, QueueBytes: 1, SnapshotBytes: 1, Logger: quiet}
		if _, err := NewCore(cfg); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func TestQueue(t *testing.T) {
	var q queue
	var want bytes.Buffer
	next, out := 0, []byte{}
	random := newCluster(t, 9, 1).random
	for range 5000 {
		if random.IntN(2) == 0 {
			b := bytes.Repeat([]byte{byte(next)}, random.IntN(300))
			next++
			q.push(b)
			want.Write(b)
		} else if q.size() > 0 {
			data, n := q.peek(500)
			if n > 1 && len(data) > 500 {
				t.Fatalf("%d batches of %d bytes in an entry of 500", n, len(data))
			}
			q.drop(n)
			out = append(out, data...)
		}
		if got := want.Len() - len(out); got != q.size() {
			t.Fatalf("queue says %d bytes, want %d", q.size(), got)
		}
	}
	if !bytes.Equal(out, want.Bytes()[:len(out)]) {
		t.Error("the queue does not give back what went in")
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
	if got := strings.Count(buf.String(), "\n"); got != 4 {
		t.Errorf("raft wrote %d lines at level info, want 4 (its warnings and errors):\n%s", got, buf.String())
	}
}
