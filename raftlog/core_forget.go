package raftlog

// led files that the leader of the term has spoken.
func (c *Core) led(from, term uint64) {
	if from != 0 && from == c.role.Leader && term == c.role.Term {
		c.ledAt = c.ticks
	}
}

// forget makes this replica forget a leader of whom it has heard nothing for as long as a voter waits at most. A voter stands for election
// by then; one without a vote would name a dead leader for ever, and all that hear of it would believe that the group is well.
func (c *Core) forget() {
	if c.role.Leader == 0 || c.role.Leading || c.ticks-c.ledAt < 2*uint64(c.cfg.ElectionTicks) {
		return
	}
	// An error says that there is nothing to forget.
	_ = c.node.ForgetLeader()
}
