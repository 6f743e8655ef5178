package raftlog

import (
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

func (r *replica) sees(id uint64) Progress {
	for _, p := range r.core.Survey().Replicas {
		if p.ID == id {
			return p
		}
	}
	r.c.check.fault("replica %d knows nothing of %d: %+v", r.id, id, r.core.Survey())
	return Progress{}
}

// A follower is not settled while it has the entry of a new configuration but not the commit index.
// This is rule 13 of cluster/voters.
func TestSettledIsWhoKnowsTheCommit(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	f, other := c.others(l)[0], c.others(l)[1]
	for _, p := range l.core.Survey().Replicas {
		if !p.Settled {
			t.Errorf("%d is not settled in peace, though nothing was proposed but by the log itself", p.ID)
		}
	}
	before := l.config.Index
	c.lose = func(m *raftpb.Message) bool { // f gets the entry of the change, and no later append
		n := len(m.GetEntries())
		return m.GetTo() == f.id && (m.GetCommit() > before && n == 0 ||
			n > 0 && m.GetEntries()[n-1].GetType() == raftpb.EntryNormal)
	}
	if !l.core.Change(l.role.Term, add(9)) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	if l.sees(f.id).Settled != true {
		t.Error("a change that is only proposed unsettles")
	}
	c.drain()
	if l.config.Index == before || f.core.last < l.config.Index || f.config.Index != before {
		t.Fatalf("the leader is at %d, the follower has %d and is at %d", l.config.Index, f.core.last, f.config.Index)
	}
	if l.sees(f.id).Settled {
		t.Error("a follower is settled that does not know the configuration to be committed")
	}
	if !l.sees(other.id).Settled || !l.sees(l.id).Settled {
		t.Errorf("replicas that know it are not settled: %+v", l.core.Survey())
	}
	c.lose = nil
	c.settle(2)
	if !l.sees(f.id).Settled || f.config.Index != l.config.Index {
		t.Errorf("the follower is not settled although it knows")
	}
	c.verify()
}

func TestNewLeadSettlesAnew(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	next, third := c.others(l)[0], c.others(l)[1]
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == third.id && m.GetFrom() == next.id }
	if err := l.core.Transfer(next.id); err != nil {
		t.Fatal(err)
	}
	l.turn()
	c.drain()
	if next.leading == 0 {
		t.Fatal("the lead was not handed over")
	}
	if next.sees(third.id).Settled || !next.sees(l.id).Settled {
		t.Errorf("the new leader sees %+v", next.core.Survey())
	}
	c.verify()
}

// A new leader counts the silence of each replica from its own election.
func TestOnlyThisLeadsHearingCounts(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	next, silent := c.others(l)[0], c.others(l)[1]
	c.join(4)
	c.change(l, add(4))
	c.settle(5)
	for _, id := range []uint64{silent.id, 4} {
		if p := l.sees(id); !p.Active || p.SilentFor > testTick {
			t.Errorf("the leader sees %+v of one that answers", p)
		}
	}
	c.isolate(silent.id)
	for _, step := range [][2]*replica{{l, next}, {next, l}} { // two transfers in a short time
		if err := step[0].core.Transfer(step[1].id); err != nil {
			t.Fatal(err)
		}
		step[0].turn()
		c.drain()
	}
	if l.leading == 0 {
		t.Fatal("the lead did not come back")
	}
	if p := l.sees(silent.id); p.Active || p.SilentFor != 0 || p.Heard {
		t.Errorf("a new lead sees %+v of one that has not spoken in it", p)
	}
	if p := l.sees(4); !p.Active || !p.Heard {
		t.Errorf("a new lead sees %+v of a learner that answers", p)
	}
	c.pass(7)
	if p := l.sees(silent.id); p.Active || p.SilentFor != 7*testTick {
		t.Errorf("after seven ticks: %+v", p)
	}
	// A late message of an earlier term does not count.
	l.core.Step(&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: &silent.id, To: &l.id,
		Term: new(l.role.Term - 1)})
	if p := l.sees(silent.id); p.Active {
		t.Errorf("after a late message: %+v", p)
	}
	clear(c.cut)
	c.pass(1)
	if p := l.sees(silent.id); !p.Active || p.SilentFor > testTick {
		t.Errorf("after it has spoken: %+v", p)
	}
	c.isolate(silent.id)
	for n := range 15 {
		if p := l.sees(silent.id); p.Active != (p.SilentFor < 10*testTick) ||
			p.SilentFor > time.Duration(n+1)*testTick {
			t.Errorf("%d ticks after it fell silent: %+v", n, p)
		}
		c.pass(1)
	}
	c.verify()
}

func TestSilenceBeginsWithTheAddition(t *testing.T) {
	c, l := lone(t)
	c.settle(500)
	c.change(l, add(2)) // replica 2 is not running
	if p := l.sees(2); p.Active || p.SilentFor > 4*testTick || p.CaughtUp || p.Full || p.Settled {
		t.Errorf("of a new learner the leader sees %+v", p)
	}
	c.settle(20)
	if p := l.sees(2); p.SilentFor < 20*testTick {
		t.Errorf("after 20 ticks the leader sees %+v", p)
	}
	c.change(l, Change{Remove: []uint64{2}})
	if _, ok := l.core.hearings.of[2]; ok || len(l.core.Survey().Replicas) != 1 {
		t.Errorf("of a removed replica something is kept: %+v", l.core.Survey())
	}
	c.verify()
}

func TestCaughtUpAndFull(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.KeepEntries, cfg.SnapshotBytes = 1000, 1<<20 })
	l := c.elect()
	c.join(4)
	c.change(l, add(4))
	c.settle(3)
	check := func(when string, caughtUp, full bool) {
		t.Helper()
		if p := l.sees(4); p.CaughtUp != caughtUp || p.Full != full {
			t.Errorf("%s: %+v", when, p)
		}
	}
	check("in peace", true, true)
	c.isolate(4)
	for range 64 {
		l.propose()
		l.turn()
		c.drain()
	}
	check("64 entries on their way", true, true)
	l.propose()
	l.turn()
	c.drain()
	check("65 on their way", false, true)
	if s := l.core.Survey(); s.Last != l.core.last || l.sees(4).Match+65 != s.Last || l.sees(l.id).Match != s.Last {
		t.Errorf("the leader's last entry is %d, and the survey %+v", l.core.last, s)
	}
	l.core.Unreachable(4)
	check("known to be lost", false, false)
	c.settle(3)
	check("sent again", true, true)
	l.core.Unreachable(4)
	check("probed", false, false)
	if p := l.sees(l.id); !p.CaughtUp || !p.Full || !p.Active || p.SilentFor != 0 {
		t.Errorf("of itself the leader sees %+v", p)
	}
	c.verify()
}

// A leader that is alone gets no ticks once it rests, so the end of the write that settles its
// configuration must be published without one. Otherwise the last instance that leaves it waits
// until the time limit of its Leave.
func TestALoneLeaderPublishesThatItIsSettled(t *testing.T) {
	c, l := lone(t)
	c.settle(500)
	l.core.group.changing.mark = l.core.last // a configuration was just applied
	l.core.unseen = true
	if s, anew := l.core.Surveyed(); !anew || s.Replicas[0].Settled {
		t.Fatalf("before the next entry: %+v, %v", s, anew)
	}
	l.propose()
	l.turn()
	c.drain()
	if s, anew := l.core.Surveyed(); !anew || !s.Replicas[0].Settled {
		t.Errorf("after the next entry: %+v, anew %v", s, anew)
	}
}
