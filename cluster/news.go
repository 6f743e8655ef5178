package cluster

import "slices"

// tellMembers tells the host's configuration that gossip sees others than before. It compares only if somebody wants to know.
func (c *Cluster) tellMembers(before *view, after []Member) {
	if c.cfg.Changed == nil {
		return
	}
	var had []Member
	if before != nil {
		had = before.Members
	}
	if !slices.Equal(had, after) {
		c.cfg.Changed(had, after)
	}
}
