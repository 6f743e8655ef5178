package raftlog

// rests reports whether this replica needs no ticks: it leads, it is the only member, and no work
// is pending. After a rest of more than one tick, the first call of Tick counts no ticks. The ticks
// are then counted from the time of that call.
func (c *Core) rests() bool {
	g, a := &c.group, &c.appends
	if !c.role.Leading || !g.leads || len(c.members.config.Members) != 1 {
		return false
	}
	work := g.queue.size() + g.inFlight + len(g.asked) + len(g.reads) + len(a.waiting) + len(a.saving) +
		len(c.heldBack.commits)
	return work == 0 && !c.pending() && !c.snapshots.busy() && c.durable > g.changing.mark
}
