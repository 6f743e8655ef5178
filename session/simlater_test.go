package session_test

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// later returns, for each eighth frame of a client, a command of a build that this simulation does
// not have: its rules are above those of the group, and its kind and its fields are unknown. Its
// length is that of its number.
func (n *simNode) later() []byte {
	if n.frames++; n.frames%8 != 0 {
		return nil
	}
	c := lockfsm.Command{Rules: lockfsm.RulesVersion + 1, Kind: lockfsm.Kind(n.frames), Number: 1,
		Session: n.client.Status(n.clock()).Session}
	b := c.Append(nil)
	more := n.frames % 50
	b = append(b, make([]byte, more)...)
	b[0] += byte(more)
	return b
}

// mustRefuseNone checks that no attachment ends because of a command of a newer build: no other
// command of these clients can be refused.
func (n *simNode) mustRefuseNone(replies []byte) {
	for len(replies) > 0 {
		r, rest, err := session.NextReply(replies)
		if err != nil || r.Kind == session.ReplyEnded && r.Reason == session.EndRefused {
			n.s.fail("keeper %d ends an attachment with %+v, %v", n.id, r, err)
			return
		}
		replies = rest
	}
}
