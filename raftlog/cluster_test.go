package raftlog

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// cluster is a group of Cores that run on one goroutine, with random faults of network and disks.
type cluster struct {
	t        *testing.T
	config   CoreConfig
	check    *checker
	random   *rand.Rand
	replicas []*replica
	wire     []*raftpb.Message
	twice    []*raftpb.Message // messages from Output.Duplicates
	snaps    []*raftpb.Message
	cut      map[[2]uint64]bool // pairs of sender and receiver whose messages are lost
	sum      hash.Hash64
	log      []string
	verbose  bool
	lose     func(*raftpb.Message) bool // reports whether the network must lose a message
	reshapes bool                       // chaos also changes the configuration
	next     uint64                     // next unused ID, if reshapes is set
	hideLoss bool                       // if set, lost snapshots are not reported
	slowly   bool                       // snapshots are completed only by the method finish
	lazily   bool                       // a turn often follows several inputs, as in a Log
}

func newCluster(t *testing.T, seed uint64, voters int, change ...func(*CoreConfig)) *cluster {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	c := &cluster{
		t: t, check: newChecker(), random: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]uint64]bool{}, sum: fnv.New64a(),
		config: CoreConfig{Tick: testTick, ElectionTicks: 10, HeartbeatTicks: 1, EntriesInFlight: 2,
			QueueBytes:    1 << 16,
			SnapshotBytes: 1 << 9, KeepEntries: 8, Logger: quiet},
	}
	for _, f := range change {
		f(&c.config)
	}
	ids := []uint64{}
	for i := range voters {
		ids = append(ids, uint64(i+1))
	}
	for _, id := range ids {
		c.add(id, newTestStore(t, id, ids))
	}
	return c
}

func (c *cluster) add(id uint64, store *MemoryStore) *replica {
	r := &replica{c: c, id: id, store: store, now: 1}
	c.replicas = append(c.replicas, r)
	r.start()
	return r
}

func (c *cluster) trace(format string, args ...any) {
	fmt.Fprintf(c.sum, format, args...)
	if c.verbose {
		c.log = append(c.log, fmt.Sprintf(format, args...))
	}
}

func (c *cluster) send(m *raftpb.Message) {
	if c.lose == nil || !c.lose(m) {
		c.wire = append(c.wire, m)
	}
}

func (c *cluster) sendSnapshot(m *raftpb.Message) { c.snaps = append(c.snaps, m) }

func (c *cluster) replica(id uint64) *replica {
	for _, r := range c.replicas {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (c *cluster) leader() *replica {
	var best *replica
	for _, r := range c.replicas {
		if r.core != nil && r.leading != 0 && (best == nil || r.role.Term > best.role.Term) {
			best = r
		}
	}
	return best
}

func (c *cluster) deliver(m *raftpb.Message) bool {
	r := c.replica(m.GetTo())
	if r == nil || r.core == nil || c.cut[[2]uint64{m.GetFrom(), m.GetTo()}] {
		return false
	}
	c.trace("step %d %d %d %v %d", m.GetFrom(), m.GetTo(), m.GetTerm(), m.GetType(), m.GetIndex())
	r.core.Step(proto.CloneOf(m))
	c.turn(r)
	return true
}

// turn carries out the outputs of a replica, or leaves them to its next turn.
func (c *cluster) turn(r *replica) {
	if !c.lazily || c.random.IntN(3) > 0 {
		r.turn()
	}
}

func take[T any](s *[]T, i int) T {
	v := (*s)[i]
	*s = slices.Delete(*s, i, i+1)
	return v
}

func (c *cluster) chaos(loss float64, crashes bool) {
	c.lazily = true
	defer func() { c.lazily = false }()
	r := c.replicas[c.random.IntN(len(c.replicas))]
	p := c.random.Float64()
	switch {
	case p < 0.60 && len(c.wire) > 0:
		c.transmit(loss)
	case p < 0.62 && len(c.snaps) > 0:
		c.passSnapshot(loss)
	case p < 0.64:
		a, b := uint64(1+c.random.IntN(len(c.replicas))), uint64(1+c.random.IntN(len(c.replicas)))
		if c.cut[[2]uint64{a, b}] = loss > 0 && c.random.IntN(4) == 0; c.random.IntN(3) == 0 {
			clear(c.cut)
		}
	case r.core == nil:
		if c.random.IntN(20) == 0 {
			r.start()
		}
	case p < 0.80:
		r.now = r.now.Add(testTick)
		if c.random.IntN(200) == 0 {
			r.now = r.now.Add(100 * testTick) // as after a suspension of the process
		}
		if r.save != nil && r.core.hang.saveTicks > c.config.ElectionTicks {
			r.sync() // so that the leader does not retire; other tests let a disk hang
		}
		r.core.Tick(r.now)
		c.turn(r)
	case p < 0.90:
		if r.save != nil {
			r.sync()
		}
	case p < 0.95:
		if c.work(r); c.reshapes && c.random.IntN(3) == 0 {
			c.reshape(r)
		}
	case crashes && c.random.IntN(12) == 0:
		r.crash(c.random.IntN(2) == 0)
	case crashes && c.random.IntN(12) == 0:
		r.core.Transfer(0)
		c.turn(r)
	case c.random.IntN(3) == 0:
		r.finish()
	}
}

func (c *cluster) work(r *replica) {
	for range 1 + c.random.IntN(5) {
		r.propose()
		if c.random.IntN(2) == 0 {
			r.confirm(c.random.Uint64())
		}
	}
	if stale := r.role.Term - 1; r.core.Propose(stale, batch{stale, 0}.encode()) {
		c.check.fault("replica %d took a batch of term %d in %v", r.id, stale, r.role)
	}
	c.turn(r)
}

func (c *cluster) transmit(loss float64) {
	m := take(&c.wire, c.random.IntN(min(len(c.wire), 20)))
	switch p := c.random.Float64(); {
	case p < loss:
		if r := c.replica(m.GetFrom()); r.core != nil && c.random.IntN(4) == 0 {
			r.core.Unreachable(m.GetTo())
			c.turn(r)
		}
		return
	case p < 2*loss:
		c.wire = append(c.wire, m) // delivered now, and a second time later
	}
	c.deliver(m)
}

func (c *cluster) passSnapshot(loss float64) {
	m := take(&c.snaps, c.random.IntN(len(c.snaps)))
	ok := c.random.Float64() >= loss && c.deliver(m)
	if r := c.replica(m.GetFrom()); r.core != nil && (ok || !c.hideLoss) {
		r.core.SnapshotSent(m.GetTo(), m.GetTerm(), ok)
		c.turn(r)
	}
}

// settle ends all network faults, restarts crashed replicas, and then runs for the given ticks.
func (c *cluster) settle(rounds int) {
	clear(c.cut)
	for _, r := range c.replicas {
		if r.core == nil && r.failed == nil {
			r.start()
		}
	}
	c.pass(rounds)
}

// pass runs for the given ticks, with working disks and the present network faults.
func (c *cluster) pass(ticks int) {
	for range ticks {
		for _, r := range c.replicas {
			if r.core != nil {
				r.now = r.now.Add(testTick)
				r.core.Tick(r.now)
				r.turn()
			}
		}
		c.drain()
	}
}

func (c *cluster) drain() {
	rounds := 0
	for busy := true; busy; {
		if rounds++; rounds > 1000 {
			c.t.Fatal("the replicas never come to rest")
		}
		busy = false
		for _, r := range c.replicas {
			if r.core != nil && r.save != nil {
				r.sync()
				busy = true
			}
			busy = r.finish() || busy
		}
		for len(c.wire) > 0 {
			c.deliver(take(&c.wire, 0))
			busy = true
		}
		for len(c.snaps) > 0 {
			c.passSnapshot(0)
			busy = true
		}
	}
}

// elect runs until a replica is the leader, is still the leader two ticks later, and is not
// transferring its leadership.
func (c *cluster) elect() *replica {
	c.t.Helper()
	for range 100 {
		c.settle(1)
		if c.leader() == nil {
			continue
		}
		if c.settle(2); c.leader() != nil && !c.leader().core.Transferring() {
			return c.leader()
		}
	}
	c.t.Fatal("no replica leads after 100 ticks of a perfect network")
	return nil
}

func (c *cluster) verify() {
	c.t.Helper()
	for _, f := range c.check.faults {
		c.t.Error(f)
	}
}
