package raftlog

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// changing is what a lead knows of changes of the configuration. It belongs to the group and goes
// with it.
type changing struct {
	data     []byte // of the entry that is to change it, nil: there is none
	proposed bool   // it is in the log
	empty    []own  // entries proposed here that may be empty and are not applied, in the order of their proposal
	mark     uint64 // end of the log when the configuration was applied here, or this lead began
}

// own says what an empty entry of this lead is. Raft puts one in the place of a change that it
// refuses, and tells nobody.
type own uint8

const (
	ownNudge own = iota
	ownChange
)

// Change proposes a change of the configuration in the next Turn, and reports whether it will: it
// does not if this replica does not lead in that term or has not reported LeadBegins, if anything
// is pending, or if the change makes no sense. Should the lead be handed over by then, it is
// forgotten.
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

// pending reports whether a change may not be proposed: raft would refuse it, or it could end in
// another's term.
func (c *Core) pending() bool {
	waits := c.group.changing.data != nil
	return waits || len(c.config.Outgoing) > 0 || c.transferee != 0
}

// proposeChange proposes the change that waits. It goes before the batches, which may be held up
// for long.
func (c *Core) proposeChange() {
	g := &c.group.changing
	if g.data == nil || g.proposed {
		return
	}
	if !c.proposed(&raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Data: g.data}) {
		g.data = nil // the lead is being handed over; whoever wanted it looks again
		return
	}
	g.proposed = true
	g.empty = append(g.empty, ownChange)
}

// nudge proposes an empty entry if nothing has been proposed since the last configuration, or this
// lead, was applied here, and reports whether it did. It brings the commit index to the others in a
// way that they acknowledge, and raft leaves a joint configuration that it could not leave during a
// Transfer.
func (c *Core) nudge() bool {
	if !c.role.Leading || !c.group.leads || c.last != c.group.changing.mark || c.transferee != 0 {
		return false
	}
	if !c.proposed(&raftpb.Entry{}) {
		return false
	}
	c.group.changing.empty = append(c.group.changing.empty, ownNudge)
	return true
}

// proposed proposes an entry and reports whether raft took it.
func (c *Core) proposed(e *raftpb.Entry) bool {
	err := c.node.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: &c.id, Entries: []*raftpb.Entry{e}})
	if errors.Is(err, raft.ErrProposalDropped) {
		return false
	}
	must(err)
	return true
}

// resolved files an entry of this lead that is empty or changes the configuration, by the order of
// proposal: the change that was proposed here is over when it is applied, and when raft has put an
// empty entry in its place. The first entry of a term is nobody's, and so is the one by which raft
// leaves a joint configuration.
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

// configure applies a configuration entry to raft.
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
		who, err = whoIsAdded(change.AsV2().GetContext())
	}
	if err != nil {
		c.fail(fmt.Errorf("%w: entry %d: %w", ErrBroken, e.GetIndex(), err))
		return
	}
	// Before raft hears of it: it may want to send a snapshot at once, and an older one would not
	// name the replica that gets it.
	c.view.confIndex = e.GetIndex()
	conf := c.node.ApplyConfChange(change)
	c.configured(conf, newConfiguration(e.GetIndex(), conf,
		append(c.config.Members[:len(c.config.Members):len(c.config.Members)], who...)))
	c.observe()
}

// configured files the configuration that holds from now on, and has it reported. While this
// replica leads, everything that raft has been given to store is handed out by now, so that the end
// of the log is the end of what was proposed before.
func (c *Core) configured(conf *raftpb.ConfState, config Configuration) {
	c.conf, c.config = conf, config
	c.voters = union(conf.GetVoters(), conf.GetVotersOutgoing())
	c.learners = union(conf.GetLearners(), conf.GetLearnersNext())
	c.group.changing.mark = c.last
	c.listen(false)
	c.unseen = true
	c.out.Events = append(c.out.Events, Event{Kind: Configured, Config: &config})
}
