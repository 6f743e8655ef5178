package transport

import "github.com/mortise-lock/mortise/internal/nodeid"

// Spare chooses `count` of the given voters, without the leader, and opens missing links to them.
// The choice depends on this node's ID, so that the nodes of a group use different voters. Links
// may end, so call Spare regularly. It does not block, and costs almost nothing while the links
// exist. It is safe for concurrent use.
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
		_, _ = p.linkFor(v) // fails if a dial of the address failed recently, or too many links are open
	}
}
