package mortise

import (
	"github.com/mortise-lock/mortise/internal/credentials"
)

// What a derived secret may ask of an instance is checked in package queries, and what the commands of a session may do by session's keeper.

// wayIn is the part of a picture that a program needs to find the leader.
func (s Status) wayIn() Status {
	for i := range s.Voters {
		s.Voters[i].Zone = ""
	}
	return Status{Name: s.Name, Instance: s.Instance, Phase: s.Phase, Group: s.Group, Leader: s.Leader, Session: s.Session, Voters: s.Voters, Waiting: s.Waiting}
}

// isMember reports whether this node has a member's secret: it locks, and neither votes nor serves.
func (n *Node) isMember() bool { return n.self.Tier == credentials.Member }

// reach is the address that this node says it is reached at; empty for a member.
func (n *Node) reach() string {
	if n.isMember() {
		return ""
	}
	return n.address
}
