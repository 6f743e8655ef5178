package raftlog

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

type takeStep uint8

const (
	takeNone    takeStep = iota
	takeCapture          // the owner takes the snapshot, in steps between turns
	takePrepare          // the snapshot is encoded and may be sent; Store.Prepare makes it durable
	takeName             // the snapshot is durable, and queued for the Save that names it
)

// taking is the snapshot that this replica is taking, from its beginning until a Save puts it into
// effect. There is at most one.
type taking struct {
	step      takeStep
	index     uint64            // Core.applied when the snapshot began
	conf      *raftpb.ConfState // that of its members when the snapshot began
	snap      *raftpb.Snapshot  // set in takePrepare and takeName
	overtaken bool              // a newer snapshot of another replica arrived during takePrepare
	ticks     int               // number of ticks in takePrepare
}

// snapshots are those that this replica takes.
type snapshots struct {
	since  int    // bytes applied since the last one began
	taken  uint64 // their number
	taking taking
}

func (c *Core) take() {
	if !c.snapshotDue() {
		return
	}
	c.snapshots.begin(c.applied, c.members.conf)
	c.outputs.next.Take = &Take{Index: c.applied, Header: envelope(c.members.config.Index, c.members.config.Members)}
}

func (s *snapshots) begin(applied uint64, conf *raftpb.ConfState) {
	s.taking, s.since = taking{step: takeCapture, index: applied, conf: conf}, 0
}

// busy reports whether a snapshot is being taken or made durable.
func (s *snapshots) busy() bool { return s.taking.step != takeNone }

// snapshotDue reports whether a snapshot must begin now. None begins while a newer snapshot of
// another replica waits for the store.
func (c *Core) snapshotDue() bool {
	if c.snapshots.busy() || c.appends.remote > 0 || c.applied <= c.view.index() || c.outputs.next.Failed != nil {
		return false
	}
	return c.view.wanted || c.snapshots.since >= c.enough()
}

// enough returns the number of bytes of applied entries after which the next snapshot is due. It is
// at least the size of the last snapshot, because a snapshot must not cost more than the entries
// that it replaces. A pseudo-random number, at most half as large, is added, so that replicas
// seldom take snapshots at the same time.
func (c *Core) enough() int {
	bytes := max(c.cfg.SnapshotBytes, len(c.view.snap.GetData()))
	const shares = 1 << 10
	share := (c.id*0x9e3779b97f4a7c15 + c.snapshots.taken*0xd1b54a32d192ed03) >> 54 // ten bits
	return bytes + bytes/2*int(share)/shares
}

// Snapshotted gives the Core the complete snapshot that a Take requested. index is the Index of
// the Take, and data is its Header, followed by the encoded state. The Core then owns data.
// Snapshotted ignores an abandoned snapshot.
func (c *Core) Snapshotted(index uint64, data []byte) {
	t := &c.snapshots.taking
	if t.step != takeCapture || t.index != index {
		return
	}
	t.snap = c.view.take(index, t.conf, data, c.cfg.KeepEntries, c.cfg.SnapshotBytes)
	t.step = takePrepare
	c.snapshots.taken++
	c.outputs.next.Prepare = t.snap
}

// Prepared reports that the last Output.Prepare is durable.
func (c *Core) Prepared() {
	t := &c.snapshots.taking
	if t.overtaken {
		c.snapshots.taking = taking{}
		return
	}
	if t.step == takePrepare {
		t.step = takeName
		c.appends.addOwn(t.snap)
	}
}

// overtake is called when a snapshot of another replica is queued for the store.
//
// It abandons this replica's own snapshot, which is older and would set the log back. If that
// snapshot is being prepared, it is abandoned when Prepare ends. If it is already queued for a
// Save, it is saved before the snapshot of the other replica.
//
// overtake also drops the entries that wait to be applied. Raft already has the configuration of
// the new snapshot. An older change, applied to that configuration, would give a configuration that
// the group never had.
func (c *Core) overtake() {
	c.snapshots.overtake()
	for _, m := range c.applies {
		c.responses.hold(m.GetResponses())
	}
	clear(c.applies)
	c.applies = c.applies[:0]
}

func (s *snapshots) overtake() {
	switch s.taking.step {
	case takeCapture:
		s.taking = taking{}
	case takePrepare:
		s.taking.overtaken = true
	}
}

// prepareHung counts a tick of the running Prepare, and reports whether the Prepare has exceeded
// its limit. It must be called once in each tick.
func (s *snapshots) prepareHung(tick time.Duration) bool {
	t := &s.taking
	if t.step != takePrepare {
		return false
	}
	t.ticks++
	return t.ticks >= int(prepareLimit(len(t.snap.GetData()))/tick)
}

// prepareLimit returns the time that a store may take to prepare a snapshot of the given size. A
// good disk needs seconds for a large snapshot, and kernels retry a failing disk for about half a
// minute. The time must be limited, because the log stays in memory until the Prepare ends.
func prepareLimit(bytes int) time.Duration {
	return time.Minute + time.Duration(bytes>>20)*time.Second
}
