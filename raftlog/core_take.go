package raftlog

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// takeStep is the stage of the snapshot that is being taken here.
type takeStep uint8

const (
	takeNone    takeStep = iota
	takeCapture          // the owner takes the snapshot between turns
	takePrepare          // encoded and may be sent; the store makes it durable beside the log
	takeName             // durable, and among the appends for the Save that names it
)

// taking is the snapshot that is being taken here: one at a time, from its beginning until the
// store has named it. It has the index and configuration at its beginning.
type taking struct {
	step      takeStep
	index     uint64            // value of applied at its beginning
	conf      *raftpb.ConfState // as of then
	snap      *raftpb.Snapshot  // from takePrepare on
	overtaken bool              // a newer snapshot of another replica came during takePrepare
	ticks     int               // ticks since takePrepare began
}

func (c *Core) take() {
	if !c.snapshotDue() {
		return
	}
	c.taking = taking{step: takeCapture, index: c.applied, conf: c.conf}
	c.since = 0
	c.out.Take = &Take{Index: c.applied, Header: envelope(c.config.Index, c.config.Members)}
}

// snapshotDue reports whether a snapshot must be taken now. None is taken while another replica's
// snapshot is on its way to the store, since it would be older.
func (c *Core) snapshotDue() bool {
	if c.taking.step != takeNone || c.appends.remote > 0 || c.applied <= c.view.index() || c.out.Failed != nil {
		return false
	}
	return c.view.wanted || c.since >= c.enough()
}

// enough returns the number of bytes of log after which the next snapshot is due. A snapshot should
// not cost more than the entries that it replaces, so the log must have as many bytes as the last
// snapshot. All replicas apply the same log and would take snapshots at the same moment. So up to
// half as much is added, a pseudo-random part for each replica and snapshot.
func (c *Core) enough() int {
	bytes := max(c.cfg.SnapshotBytes, len(c.view.snap.GetData()))
	const shares = 1 << 10
	share := (c.id*0x9e3779b97f4a7c15 + c.taken*0xd1b54a32d192ed03) >> 54 // ten bits
	return bytes + bytes/2*int(share)/shares
}

// Snapshotted receives the snapshot that the Output.Take with this index asked for: its Header,
// followed by the encoded state. The Core owns the slice. A snapshot that was abandoned is ignored.
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

// Prepared reports that the snapshot handed out last as Output.Prepare is durable.
func (c *Core) Prepared() {
	if c.taking.overtaken {
		c.taking = taking{}
		return
	}
	if c.taking.step == takePrepare {
		c.name()
	}
}

// name queues the prepared snapshot for the next Save.
func (c *Core) name() {
	c.taking.step = takeName
	c.appends.waiting = append(c.appends.waiting, appendItem{snapshot: c.taking.snap, local: true, durable: true})
}

// overtake is called when a snapshot of another replica is queued for the store.
//
// It abandons the snapshot that is being taken here, because naming it later would set the log
// back. A Prepare that runs cannot be stopped, so its end is awaited. A snapshot that is already in
// the queue of appends is saved before that of the other replica.
//
// It also drops the entries that wait to be applied. Raft has already applied the configuration of
// the snapshot. An older change applied to that configuration would result in a configuration that
// the group never had.
func (c *Core) overtake() {
	switch c.taking.step {
	case takeCapture:
		c.taking = taking{}
	case takePrepare:
		c.taking.overtaken = true
	}
	for _, m := range c.applies {
		c.held = append(c.held, m.GetResponses()...)
	}
	clear(c.applies)
	c.applies = c.applies[:0]
}

// prepareHung reports whether a Prepare has exceeded its limit. It must be called once in each
// tick.
func (c *Core) prepareHung() bool {
	t := &c.taking
	if t.step != takePrepare {
		return false
	}
	t.ticks++
	return t.ticks >= int(prepareLimit(len(t.snap.GetData()))/c.cfg.Tick)
}

// prepareLimit returns how long a store may take to prepare a snapshot of so many bytes. No call
// waits for a Prepare, and a good disk takes seconds for a large snapshot, so an election timeout
// would be too short. But until the end of the Prepare the log stays in memory, and without a limit
// it could exhaust the memory of the host. Kernels retry a failing disk for about half a minute. A
// disk that writes less than a MiB in a second could not keep up with the log either.
func prepareLimit(bytes int) time.Duration {
	return time.Minute + time.Duration(bytes>>20)*time.Second
}
