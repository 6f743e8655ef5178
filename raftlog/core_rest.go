package raftlog

// rests reports whether this replica needs no ticks: it leads, the group has no other replica, and
// nothing is under way. It has no follower that needs heartbeats and no quorum to lose. The first
// Tick after a rest only restarts the clock, because the time of the rest must not count as silence
// of others.
func (c *Core) rests() bool {
	g, a := &c.group, &c.appends
	if !c.role.Leading || !g.leads || len(c.config.Members) != 1 {
		return false
	}
	work := g.queue.size() + g.inFlight + len(g.asked) + len(g.reads) + len(a.waiting) + len(a.saving) + len(c.commits)
	return work == 0 && !c.pending() && c.taking.step == takeNone && c.durable > g.changing.mark
}
