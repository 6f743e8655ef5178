package mortise

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// record is what this instance says of itself when it opens its session.
func (n *Node) record() []byte {
	instance := n.instance().String()
	if n.isMember() {
		instance = "" // its session is no registration
	}
	group := n.config.group()
	r := replica.Record{
		Instance: instance, Name: n.config.Name, Addr: n.reach(), Zone: n.config.Zone, Version: version, Rules: lockfsm.RulesVersion,
		Settings: group.Named(), Since: n.env.wall().UnixMilli(),
	}
	if slices.Contains(group.Founders, r.Name) {
		r.Founders = group.Founders
	}
	return r.Encode()
}

// ownRecord is what is said in a session of the user's own. It has no instance, since it is no registration.
func (n *Node) ownRecord() []byte {
	r := replica.DecodeRecord(n.record())
	r.Instance, r.Own, r.Founders = "", true, nil
	return r.Encode()
}

// vouch implements session's Vouch: what the record of a new session says of the instance must be what its connection proves.
func (n *Node) vouch(from session.Peer, b []byte) (capability [32]byte, ok bool) {
	proved := replica.Proof{Instance: from, Addr: n.address}
	if from != n.instance() {
		is, met := n.port.Met(from)
		if !met {
			return capability, false
		}
		proved.Addr, proved.Rights = is.Addr, is.Peer.Capability
	}
	return proved.Vouch(b)
}

// group returns what this configuration says of the group. A node on its own needs no grace: its group is closed, nobody else can have been
// granted anything.
func (c Config) group() replica.Settings {
	g := replica.Settings{
		Replicas: c.Replicas, Founders: replica.Unique(c.Founders), Voters: c.Voters, SessionTTL: c.SessionTTL, Grace: max(c.Grace, 0),
		SessionBytes: c.MaxSessionBytes, GroupBytes: c.MaxGroupBytes,
	}
	if c.alone() {
		g.Grace = 0
	}
	return g
}
