package raftlog

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// compareCluster returns a group whose replicas have compared their states, and its leader.
func compareCluster(t *testing.T, seed uint64, voters int, change ...func(*CoreConfig)) (*cluster, *replica) {
	t.Helper()
	c := newCluster(t, seed, voters, change...)
	l := c.elect()
	c.busy(2 * compareTicks)
	for _, r := range c.replicas {
		if r.failed != nil {
			t.Fatalf("replica %d retired although all are equal: %v", r.id, r.failed)
		}
	}
	return c, l
}

// busy runs for the given ticks, and proposes a batch before each of them.
func (c *cluster) busy(ticks int) {
	for range ticks {
		if l := c.leader(); l != nil && l.propose() {
			l.turn()
		}
		c.pass(1)
	}
}

func (c *cluster) retired() (all []uint64) {
	for _, r := range c.replicas {
		if r.failed != nil {
			all = append(all, r.id)
		}
	}
	return all
}

// found runs until some replica has retired. It returns the ticks, which include those of an entry
// that was named before.
func (c *cluster) found(busy bool) int {
	for n := range 10 * compareTicks {
		if len(c.retired()) > 0 {
			return n
		}
		if busy {
			c.busy(1)
		} else {
			c.pass(1)
		}
	}
	return -1
}

// TestAReplicaThatDiffersRetires lets one replica drift from the others, with and without new
// entries, and with a replica that is down. It alone retires, soon, and the others go on.
func TestAReplicaThatDiffersRetires(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"follower", "leader", "learner"} {
		for _, busy := range []bool{true, false} {
			for _, voters := range []int{3, 4, 5} {
				for _, down := range []bool{false, voters > 4 || who == "learner"} {
					c, l := compareCluster(t, uint64(voters), voters)
					var bad *replica
					switch who {
					case "leader":
						bad = l
					case "follower":
						bad = c.replicas[l.id%uint64(voters)]
					case "learner":
						bad = c.join(uint64(voters + 1))
						c.change(l, add(bad.id))
						c.busy(compareTicks)
					}
					if down {
						other := c.replicas[(l.id+1)%uint64(voters)]
						if other == bad || other == l {
							t.Fatal("the wrong replica")
						}
						other.crash(true)
					}
					bad.drift = 1
					if !busy { // the state after the last entry, as after a snapshot
						bad.core.compared.marks[len(bad.core.compared.marks)-1].digest++
					}
					n := c.found(busy)
					t.Logf("%s, busy %v, %d voters, one down %v: after %d ticks", who, busy, voters, down, n)
					if n < 0 || n > 2*compareTicks+5 {
						t.Errorf("found after %d ticks", n)
					}
					c.busy(3 * compareTicks)
					if got := c.retired(); len(got) != 1 || got[0] != bad.id || !errors.Is(bad.failed, ErrDiverged) ||
						!errors.Is(bad.failed, ErrBroken) || !strings.Contains(bad.failed.Error(), "empty directory") {
						t.Errorf("retired: %v; replica %d: %v", got, bad.id, bad.failed)
					}
					for _, p := range c.leader().core.Survey().Replicas {
						if named := p.Differed != 0; named != (p.ID == bad.id && who != "leader") {
							t.Errorf("%s: the leader's view of replica %d: %+v", who, p.ID, p)
						}
					}
					if lead := c.leader(); lead == nil || lead == bad || !lead.propose() {
						t.Errorf("the others do not go on")
					}
					c.verify()
				}
			}
		}
	}
}

// TestWithoutAMajorityNoneRetires covers groups in which no state is that of a majority. The leader
// reports it once, not at each comparison.
func TestWithoutAMajorityNoneRetires(t *testing.T) {
	for _, voters := range []int{2, 3, 4} {
		var out bytes.Buffer
		c, l := compareCluster(t, uint64(voters), voters, func(cfg *CoreConfig) { cfg.Logger = textLogger(&out) })
		c.pass(3) // until all have applied the same entries
		for i, r := range c.replicas {
			r.drift = uint64(i)
			if voters == 4 {
				r.drift = uint64(i % 2)
			}
		}
		c.busy(20 * compareTicks)
		if got := c.retired(); len(got) > 0 || l.failed != nil {
			t.Errorf("%d voters: %v have retired", voters, got)
		}
		if n := strings.Count(out.String(), "no majority of them has the same state"); n != 1 {
			t.Errorf("%d voters: reported %d times", voters, n)
		}
		c.verify()
	}
}

// TestAForeignDigestIsIgnored sends digests that no leader of this term has named.
func TestAForeignDigestIsIgnored(t *testing.T) {
	c, l := compareCluster(t, 1, 3)
	f := c.replicas[l.id%3]
	at, term, lie, yes := f.core.applied, l.role.Term, uint64(1), true
	for _, m := range []*heartbeat{
		{from: c.replicas[(l.id+1)%3].id, term: term},    // not of the leader
		{from: l.id, term: term - 1},                     // of an earlier term
		{from: l.id, term: term, index: at + 1_000_000},  // an entry that is not applied
		{from: l.id, term: term, index: 1, tooOld: true}, // an entry whose digest is forgotten
		{from: l.id, term: term, unconfirmed: true},      // not confirmed
	} {
		if m.index == 0 {
			m.index = at
		}
		if m.tooOld {
			f.core.compared.marks = f.core.compared.marks[len(f.core.compared.marks)-1:]
		}
		f.core.Step(m.message(f.id, lie, yes && !m.unconfirmed))
		f.turn()
		if f.failed != nil {
			t.Fatalf("%+v: retired: %v", m, f.failed)
		}
	}
}

// TestASnapshotIsNotComparedBeforeItIsDelivered lets heartbeats arrive directly after a follower
// has stored a snapshot of the leader, and before the state is restored from it. They name each
// entry that the follower has skipped.
func TestASnapshotIsNotComparedBeforeItIsDelivered(t *testing.T) {
	c, l := compareCluster(t, 1, 3, func(cfg *CoreConfig) { cfg.KeepEntries, cfg.SnapshotBytes = 0, 256 })
	f := c.replicas[l.id%3]
	f.crash(false)
	c.busy(50)
	f.start()
	for tick := 0; f.save == nil || f.save.Snapshot == nil || f.save.Prepared; tick++ {
		if tick > 200 {
			t.Fatal("the follower gets no snapshot")
		}
		if f.save != nil {
			f.sync()
			continue
		}
		for _, r := range c.replicas {
			r.now = r.now.Add(testTick)
			r.core.Tick(r.now)
			r.turn()
			for r != f && r.save != nil {
				r.sync()
			}
		}
		for len(c.wire) > 0 {
			c.deliver(take(&c.wire, 0))
		}
		if len(c.snaps) > 0 {
			c.passSnapshot(0)
		}
	}
	skipped := f.core.applied + 1
	f.stored()
	f.core.Stored()
	if f.core.applied < skipped+10 {
		t.Fatalf("the snapshot is at %d, and the follower was at %d", f.core.applied, skipped-1)
	}
	for index := skipped; index <= f.core.applied; index++ {
		digest, known := l.core.digestAt(index)
		if !known {
			t.Fatalf("the leader has forgotten entry %d", index)
		}
		m := heartbeat{from: l.id, term: l.role.Term, index: index}
		f.core.Step(m.message(f.id, digest, true))
		if got := f.core.compared.answer; got.index != 0 && got.digest != digest {
			t.Errorf("it answers %x about entry %d, and the leader has %x", got.digest, index, digest)
		}
	}
	if f.turn(); f.failed != nil {
		t.Errorf("it retires: %v", f.failed)
	}
}

type heartbeat struct {
	from, term, index   uint64
	tooOld, unconfirmed bool
}

func (h *heartbeat) message(to, digest uint64, confirms bool) *raftpb.Message {
	kind := raftpb.MsgHeartbeat
	return &raftpb.Message{Type: &kind, From: &h.from, To: &to, Term: &h.term, Index: &h.index, RejectHint: &digest,
		Reject: &confirms}
}
