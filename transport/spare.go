package transport

// Spare begins links to as many of the given peers as count says, unless there are any. The peers
// are the voters of the group. leader, to which the caller has a link anyway, is not counted. Which
// peers are chosen depends on this node's ID: the nodes of a group spread over its voters. A link
// that has ended is begun anew by the next call; call it now and then, as with each renewal. It
// returns at once, costs nothing while the links are there, and is safe for concurrent use.
func (p *Port) Spare(leader Instance, voters []Peer, count int) {
	if len(voters) == 0 {
		return
	}
	self := p.self.Load().Instance()
	first := int(self[len(self)-1])
	for i, begun := 0, 0; i < len(voters) && begun < count; i++ {
		v := voters[(first+i)%len(voters)]
		if v.Instance == leader || v.Instance == self || v.Addr == "" {
			continue
		}
		begun++
		_, _ = p.linkFor(v) // it may have a pause, or too many links are open
	}
}
