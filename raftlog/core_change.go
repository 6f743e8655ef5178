package raftlog

import (
	"bytes"
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// changing holds the leader's changes of the configuration in one term.
type changing struct {
	data     []byte // data of the entry that changes the configuration; nil if there is none
	proposed bool   // the entry is in the log
	empty    []own  // one for each unapplied entry of proposeChange or proposeEmpty, in order
	mark     uint64 // last log index when LeadBegins or Configured was last reported
}

// The type own tells which function has proposed an entry: proposeChange or proposeEmpty. The
// entry does not show this, because raft silently replaces a refused change with an empty entry.
type own uint8

const (
	ownEmpty own = iota
	ownChange
)

// Change proposes a change of the configuration in the next Turn, and reports whether it accepted
// the change. It reports false if this replica does not lead in that term or has not reported
// LeadBegins, if another change is pending, or if the change is invalid. An accepted change is
// dropped if a transfer of the leadership begins before the next Turn.
func (c *Core) Change(term uint64, ch Change) bool {
	if !c.role.Leading || term != c.role.Term || !c.group.leads || c.pending() {
		return false
	}
	cc, ok := c.members.config.plan(ch)
	if !ok {
		return false
	}
	if ch.Add != nil {
		cc.Context = added(*ch.Add)
	}
	data, err := proto.Marshal(cc)
	must(err)
	c.group.changing.data, c.unseen = data, true
	return true
}

// pending reports whether no change may be proposed now: another change is not applied yet, the
// configuration is joint, or the leadership is being transferred.
func (c *Core) pending() bool {
	waits := c.group.changing.data != nil
	return waits || len(c.members.config.Outgoing) > 0 || c.transferee != 0
}

// proposeChange proposes the waiting change. It runs before the batches are proposed, because
// batches may wait long.
func (c *Core) proposeChange() {
	g := &c.group.changing
	if g.data == nil || g.proposed {
		return
	}
	if !c.proposed(&raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: g.data}) {
		g.data = nil // the leadership is being transferred; the caller must try again
		return
	}
	g.proposed = true
	g.empty = append(g.empty, ownChange)
}

// proposeEmpty proposes an empty entry, unless another entry already follows changing.mark in the
// log. It reports whether it proposed an entry. A follower that acknowledges the entry has the
// commit index of the configuration. When the entry is applied, raft leaves a joint configuration
// that it could not leave during a transfer.
func (c *Core) proposeEmpty() bool {
	if !c.role.Leading || !c.group.leads || c.last != c.group.changing.mark || c.transferee != 0 {
		return false
	}
	if !c.proposed(&raftpb.Entry{}) {
		return false
	}
	c.group.changing.empty = append(c.group.changing.empty, ownEmpty)
	return true
}

func (c *Core) proposed(e *raftpb.Entry) bool {
	err := c.node.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: &c.id, Entries: []*raftpb.Entry{e}})
	if errors.Is(err, raft.ErrProposalDropped) {
		return false
	}
	must(err)
	return true
}

// resolved removes the oldest item of changing.empty when the item's entry is applied. A change is
// no longer pending when it is applied, or when the empty entry that replaced it is applied.
// changing.empty has no item for the first entry of a term, nor for the entry by which raft leaves
// a joint configuration.
func (c *Core) resolved(e *raftpb.Entry) {
	g := &c.group.changing
	if !c.group.leads || len(g.empty) == 0 || len(e.GetData()) > 0 && !bytes.Equal(e.GetData(), g.data) {
		return
	}
	if e.GetType() != raftpb.EntryNormal && len(e.GetData()) == 0 {
		return
	}
	if g.empty[0] == ownChange {
		g.data, g.proposed = nil, false
	}
	g.empty = g.empty[1:]
}
