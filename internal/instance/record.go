package instance

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
)

func (n *Instance) record() []byte {
	instance := n.instance().String()
	if n.isMember() {
		instance = "" // the record of a member names no instance
	}
	group := n.config.Group
	r := replica.Record{
		Instance: instance, Name: n.config.Name, Addr: n.reach(), Zone: n.config.Zone, Version: n.config.Version,
		Rules: n.env.rules, Build: n.env.build,
		Settings: group.Named(), Since: n.env.wall().UnixMilli(),
	}
	if slices.Contains(group.Founders, r.Name) {
		r.Founders = group.Founders
	}
	return r.Encode()
}

// ownRecord returns the record of a session of the user's own. The record names no instance.
func (n *Instance) ownRecord() []byte {
	return replica.DecodeRecord(n.record()).OwnSession().Encode()
}

// vouch implements the function Vouch of package keeper: the record of a new session must agree
// with the identity that was proved on its connection.
func (n *Instance) vouch(from nodeid.ID, rights *capability.Capability, b []byte) bool {
	proved := replica.Proof{Instance: from, Addr: n.address, Rights: rights}
	if from != n.instance() {
		is, met := n.port.Met(from)
		if !met {
			return false
		}
		proved.Addr = is.Addr
	}
	return proved.Vouch(b)
}
