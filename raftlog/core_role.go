package raftlog

import "go.etcd.io/raft/v3"

// observe compares raft's role with c.role, and reports a change by an event. It must run after
// every call of raft that may change the role. Otherwise a batch that was queued in one term could
// be proposed in another term.
func (c *Core) observe() {
	s := c.node.BasicStatus()
	c.transferee = s.LeadTransferee
	now := Role{Term: s.GetTerm(), Leader: s.Lead, Leading: s.RaftState == raft.StateLeader}
	if now == c.role {
		return
	}
	if now.Term != c.role.Term || now.Leading != c.role.Leading {
		c.group = group{sequence: c.group.sequence}
		c.hang.handover = false
	}
	if now.Leading && (now.Term != c.role.Term || !c.role.Leading) {
		clear(c.hearings.of)
		c.hearings.listen(&c.members.config, c.ticks)
	}
	c.role, c.unseen = now, true
	if now.Leading {
		c.detector.follows(0)
	} else {
		c.detector.follows(now.Leader)
	}
	c.duplicates.until = c.ticks + unsettledTicks
	if now.Leader == 0 {
		now.LastTerm, now.LastIndex, _ = c.LastEntry() // zero after an error
	}
	c.outputs.event(Event{Kind: RoleChanged, Role: now})
}

// Role returns the present role.
func (c *Core) Role() Role { return c.role }
