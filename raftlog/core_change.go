package raftlog

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// changing is the state of configuration changes by this leader in its term. It is reset together
// with group.
type changing struct {
	data     []byte // of the entry that changes it; nil if there is none
	proposed bool   // it is in the log
	empty    []own  // entries proposed here and not applied that are empty or may be replaced by an empty one; in order
	mark     uint64 // end of the log when the configuration was applied here, or when this replica began to lead
}

// own is the kind of an empty entry that this leader has proposed. Raft silently replaces a change
// that it refuses by an empty entry.
type own uint8

const (
	ownEmpty own = iota
	ownChange
)

// Change proposes a change of the configuration in the next Turn, and reports whether it will. It
// reports false if this replica does not lead in that term or has not reported LeadBegins, if a
// change is pending, or if the change is invalid. The change is dropped if a transfer of leadership
// begins before that Turn.
func (c *Core) Change(term uint64, ch Change) bool {
	if !c.role.Leading || term != c.role.Term || !c.group.leads || c.pending() {
		return false
	}
	cc, ok := c.config.plan(ch)
	if !ok {
		return false
	}
	data, err := proto.Marshal(cc)
	must(err)
	c.group.changing.data, c.unseen = data, true
	return true
}

// pending reports whether raft would refuse a change, or whether a change could complete in the
// term of another leader.
func (c *Core) pending() bool {
	waits := c.group.changing.data != nil
	return waits || len(c.config.Outgoing) > 0 || c.transferee != 0
}

// proposeChange runs before the batches are proposed, because batches may wait for a long time.
func (c *Core) proposeChange() {
	g := &c.group.changing
	if g.data == nil || g.proposed {
		return
	}
	if !c.proposed(&raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: g.data}) {
		g.data = nil // the leadership is being transferred; the caller has to decide again
		return
	}
	g.proposed = true
	g.empty = append(g.empty, ownChange)
}

// proposeEmpty proposes an empty entry and reports whether it did. It does so only if none was
// proposed since the last configuration, or the first entry of this leader's term, was applied
// here. With that entry the followers acknowledge the commit index, and raft leaves a joint
// configuration that it could not leave during a Transfer.
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

// resolved removes the oldest item of changing.empty when its entry is applied: an empty entry that
// this leader proposed, or the change. The change that was proposed here has ended when its entry
// is applied or was replaced by an empty one. changing.empty has neither the first entry of a term
// nor the one by which raft leaves a joint configuration.
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

func (c *Core) configure(e *raftpb.Entry) {
	var change raftpb.ConfChangeI
	var err error
	switch e.GetType() {
	case raftpb.EntryConfChange:
		cc := new(raftpb.ConfChange)
		change, err = cc, proto.Unmarshal(e.GetData(), cc)
	case raftpb.EntryConfChangeV2:
		cc := new(raftpb.ConfChangeV2)
		change, err = cc, proto.Unmarshal(e.GetData(), cc)
	default:
		err = fmt.Errorf("unknown type %d", e.GetType())
	}
	var who []Member
	if err == nil {
		who, err = addedMembers(change.AsV2().GetContext())
	}
	if err != nil {
		c.fail(fmt.Errorf("%w: entry %d: %w", ErrBroken, e.GetIndex(), err))
		return
	}
	// This is set before ApplyConfChange, because raft may then want to send a snapshot
	// immediately, and an older snapshot would not name its receiver.
	c.view.confIndex = e.GetIndex()
	conf := c.node.ApplyConfChange(change)
	c.configured(conf, newConfiguration(e.GetIndex(), conf,
		append(c.config.Members[:len(c.config.Members):len(c.config.Members)], who...)))
	c.observe()
}

// configured stores the new configuration and reports it by an event. On a leader raft has handed
// out all proposed entries, so c.last is the last index that was proposed before the configuration.
func (c *Core) configured(conf *raftpb.ConfState, config Configuration) {
	c.conf, c.config = conf, config
	c.voters = union(conf.GetVoters(), conf.GetVotersOutgoing())
	c.learners = union(conf.GetLearners(), conf.GetLearnersNext())
	c.group.changing.mark = c.last
	c.listen(false)
	c.unseen = true
	c.out.Events = append(c.out.Events, Event{Kind: Configured, Config: &config})
}
