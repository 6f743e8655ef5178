package transport

import "github.com/mortise-lock/mortise/internal/nodeid"

// Spare begins links to count of the given voters, unless these links exist. leader does not count,
// because the caller has a link to it anyway. The choice depends on this node's ID, so that the
// nodes of a group spread over its voters. The next call begins an ended link again; call it now
// and then, as with each renewal. It returns at once, costs nothing while the links exist, and is
// safe for concurrent use.
func (p *Port) Spare(leader nodeid.ID, voters []nodeid.Endpoint, count int) {
	if len(voters) == 0 {
		return
	}
	self := p.self.Load().Instance()
	first := int(self[len(self)-1])
	for i, begun := 0, 0; i < len(voters) && begun < count; i++ {
		v := voters[(first+i)%len(voters)]
		if v.ID == leader || v.ID == self || v.Addr == "" {
			continue
		}
		begun++
		_, _ = p.linkFor(v) // the address may pause, or too many links are open
	}
}
