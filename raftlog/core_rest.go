package raftlog

// rests reports whether the passing of time means nothing to this replica: it leads, no other
// replica belongs to the group, and nothing is under way. Such a leader has no follower to send
// heartbeats to and no quorum to lose, so it needs no ticks. The first Tick after a rest only
// starts the clock anew: a rest is not silence.
func (c *Core) rests() bool {
	g, a := &c.group, &c.appends
	if !c.role.Leading || !g.leads || len(c.config.Members) != 1 {
		return false
	}
	work := g.queue.size() + g.inFlight + len(g.asked) + len(g.reads) + len(a.waiting) + len(a.saving) + len(c.commits)
	return work == 0 && !c.pending() && c.taking.step == takeNone && c.durable > g.changing.mark
}
