package raftlog

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// takeStep says how far a snapshot has come that is being taken here.
type takeStep uint8

const (
	takeNone    takeStep = iota
	takeCapture          // the owner takes it, between other things
	takePrepare          // its bytes are here, for others to be sent; the store makes them durable beside the log
	takeName             // they are durable; it is among the appends, for the Save that names it
)

// taking is the snapshot that is being taken here: one at a time, from its beginning until the
// store has named it. Whatever is applied meanwhile comes after it, so what belongs to it is noted
// at its beginning.
type taking struct {
	step      takeStep
	index     uint64            // applied when it was begun
	conf      *raftpb.ConfState // as of then
	snap      *raftpb.Snapshot  // from takePrepare on
	overtaken bool              // another replica's snapshot, which is newer, came while the store was preparing it
	ticks     int               // in takePrepare
}

// take begins a snapshot if one is due.
func (c *Core) take() {
	if !c.snapshotDue() {
		return
	}
	c.taking = taking{step: takeCapture, index: c.applied, conf: c.conf}
	c.since = 0
	c.out.Take = &Take{Index: c.applied, Header: envelope(c.config.Index, c.config.Members)}
}

// snapshotDue reports whether a snapshot is to be taken now: raft needs a newer one to send, or
// enough has been applied since the last. A large state waits for as many bytes of log, so that a
// snapshot costs at most as much as the entries it replaces. While another replica's snapshot is on
// its way to the store, one of our own would be older.
func (c *Core) snapshotDue() bool {
	if c.taking.step != takeNone || c.appends.remote > 0 || c.applied <= c.view.index() || c.out.Failed != nil {
		return false
	}
	return c.view.wanted || c.since >= c.enough()
}

// enough is how many bytes of log bring the next snapshot. All replicas apply the same log, and
// would always take theirs at the same moment: with each of them busy nobody is left who answers at
// once. So it takes up to half as much more, each replica and each snapshot its own share of that,
// as if by chance: that two take theirs together is rare, and does not last.
func (c *Core) enough() int {
	bytes := max(c.cfg.SnapshotBytes, len(c.view.snap.GetData()))
	const shares = 1 << 10
	share := (c.id*0x9e3779b97f4a7c15 + c.taken*0xd1b54a32d192ed03) >> 54 // ten bits
	return bytes + bytes/2*int(share)/shares
}

// Snapshotted hands in the snapshot that an Output.Take with this index has asked for: its Header
// and the encoded state. The Core owns the slice. One that nobody waits for any more is ignored.
func (c *Core) Snapshotted(index uint64, data []byte) {
	t := &c.taking
	if t.step != takeCapture || t.index != index {
		return
	}
	t.snap = c.view.take(index, t.conf, data, c.cfg.KeepEntries, c.cfg.SnapshotBytes)
	t.step = takePrepare
	c.taken++
	c.out.Prepare = t.snap
}

// Prepared says that the snapshot handed out last as Output.Prepare is durable.
func (c *Core) Prepared() {
	if c.taking.overtaken {
		c.taking = taking{}
		return
	}
	if c.taking.step == takePrepare {
		c.name()
	}
}

// name lets the Saves go on with the snapshot: from the next one on it is the log's.
func (c *Core) name() {
	c.taking.step = takeName
	c.appends.waiting = append(c.appends.waiting, appendItem{snapshot: c.taking.snap, local: true, durable: true})
}

// overtake gives up the snapshot that is being taken, for another replica's that is on its way to
// the store: named after that it would take the log back. What the store is preparing cannot be
// taken back, and is waited for; what is among the appends already comes before.
func (c *Core) overtake() {
	switch c.taking.step {
	case takeCapture:
		c.taking = taking{}
	case takePrepare:
		c.taking.overtaken = true
	}
}

// prepareHung reports, once in each tick, whether the store has been preparing a snapshot for too
// long.
func (c *Core) prepareHung() bool {
	t := &c.taking
	if t.step != takePrepare {
		return false
	}
	t.ticks++
	return t.ticks >= int(prepareLimit(len(t.snap.GetData()))/c.cfg.Tick)
}

// prepareLimit is how long a store may take to prepare a snapshot of so many bytes. Nobody waits
// for it, and no vote or acknowledgement rests on it, so an election timeout would be far too
// strict: a good disk takes seconds for a large one. But a replica whose snapshots never become
// durable keeps its whole log in memory, for ever, and in the end takes its host along. Kernels try
// again for half a minute or so before they give a disk up; and one that writes less than a MiB in
// a second could not keep up with the log either.
func prepareLimit(bytes int) time.Duration {
	return time.Minute + time.Duration(bytes>>20)*time.Second
}
