package transport

// spareLinks is how many voters beside its leader an instance that does not vote keeps links to.
const spareLinks = 2

// Spare begins links to two of the given peers, which are the voters of the group, unless there are
// any. leader, to which the caller has a link anyway, is not among the two. So a change of leader needs
// no handshake, however many instances then turn to the new one. Which two it is depends on this node's
// ID: the nodes of a group spread over its voters. A link that has ended is begun anew by the next call;
// call it now and then, as with each renewal. It returns at once, costs nothing while the links are
// there, and is safe for concurrent use.
func (p *Port) Spare(leader Instance, voters []Peer) {
	if len(voters) == 0 {
		return
	}
	self := p.self.Load().Instance()
	first := int(self[len(self)-1])
	for i, begun := 0, 0; i < len(voters) && begun < spareLinks; i++ {
		v := voters[(first+i)%len(voters)]
		if v.Instance == leader || v.Instance == self || v.Addr == "" {
			continue
		}
		begun++
		_, _ = p.linkFor(v) // it may have a pause, or too many links are open
	}
}
