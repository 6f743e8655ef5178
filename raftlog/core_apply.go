package raftlog

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A replica applies a configuration only after a commit index that covers the configuration is
// durable on this replica. So after a restart it never has an older configuration than it has
// reported.
//
// Without this rule a leader could report the end of a joint configuration, and then restart in the
// joint configuration. The group would then need the vote of a removed replica, whose disk may no
// longer exist.

// apply turns committed entries, which are already durable on this replica, into events. If one of
// them is a configuration whose commit index is not durable, apply requests a Save and the entries
// wait.
func (c *Core) apply() {
	for len(c.applies) > 0 {
		m := c.applies[0]
		if change := lastChange(m); change > c.appends.commit {
			c.appends.demand(change)
			return
		}
		c.applies = slices.Delete(c.applies, 0, 1)
		for _, e := range m.GetEntries() {
			c.applyEntry(e)
		}
		c.responses.hold(m.GetResponses())
	}
}

func (c *Core) applyEntry(e *raftpb.Entry) {
	own := c.role.Leading && e.GetTerm() == c.role.Term
	c.applied = e.GetIndex()
	c.snapshots.since += len(e.GetData()) + entryOverheadBytes
	switch {
	case e.GetType() != raftpb.EntryNormal:
		if own {
			c.resolved(e)
		}
		c.configure(e)
	case len(e.GetData()) == 0:
		if own {
			c.resolved(e)
		}
	default:
		if own {
			c.group.inFlight--
		}
		c.outputs.event(Event{Kind: Applied, Index: e.GetIndex(), Term: e.GetTerm(),
			Data: e.GetData()})
	}
	if own && !c.group.leads && c.role.Leading {
		c.group.leads, c.group.changing.mark, c.unseen = true, c.last, true
		c.outputs.event(Event{Kind: LeadBegins, Term: e.GetTerm()})
	}
}

func lastChange(m *raftpb.Message) (index uint64) {
	for _, e := range m.GetEntries() {
		if e.GetType() != raftpb.EntryNormal {
			index = e.GetIndex()
		}
	}
	return index
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
		c.outputs.fail(fmt.Errorf("%w: entry %d: %w", ErrBroken, e.GetIndex(), err))
		return
	}
	// Set confIndex before ApplyConfChange, because raft may request a snapshot during that call,
	// and an older snapshot would not name the new member.
	c.view.confIndex = e.GetIndex()
	conf := c.node.ApplyConfChange(change)
	c.configured(conf, newConfiguration(e.GetIndex(), conf,
		append(c.members.config.Members[:len(c.members.config.Members):len(c.members.config.Members)], who...)))
	c.observe()
}

// configured stores the new configuration and reports it by an event. On a leader, raft has already
// handed out all proposed entries, so c.last is the index of the last proposed entry.
func (c *Core) configured(conf *raftpb.ConfState, config Configuration) {
	c.members = newMembers(config, conf)
	c.group.changing.mark = c.last
	c.hearings.listen(&c.members.config, c.ticks)
	c.unseen = true
	c.outputs.event(Event{Kind: Configured, Config: &config})
}

// installed replaces the replica's state by a snapshot that is durable on this replica.
func (c *Core) installed(s *raftpb.Snapshot) error {
	config, state, err := open(s)
	if err != nil {
		return fmt.Errorf("%w: the snapshot at %d: %w", ErrCorrupt, s.GetMetadata().GetIndex(), err)
	}
	meta := s.GetMetadata()
	c.view.install(s)
	c.applied, c.snapshots.since = meta.GetIndex(), 0
	c.compared.skip()
	c.outputs.event(Event{Kind: Restored, Index: meta.GetIndex(), Term: meta.GetTerm(),
		Data: state})
	c.configured(meta.GetConfState(), config)
	return nil
}
