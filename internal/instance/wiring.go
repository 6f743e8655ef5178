package instance

import (
	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// This file sends frames, and keeps links for them. A message to this instance itself goes directly
// to the receiving package.

func (n *Instance) submit(to nodeid.Endpoint, renewals, commands []byte) error {
	if to.ID != n.instance() {
		if len(renewals) > 0 {
			n.spare(to.ID)
		}
		return n.port.Send(to, transport.Frame{Renewals: renewals, Commands: commands})
	}
	r := n.replica.Load()
	if r == nil {
		return errNoVoter
	}
	r.keeper.ReceiveFrom(keeper.Sender{ID: to.ID, Life: n.begins.Life}, renewals, commands)
	return nil
}

// reply sends the keeper's replies to an instance. It never dials, because a client that has sent a
// request has a stream.
func (n *Instance) reply(to nodeid.ID, replies []byte) error {
	if to == n.instance() {
		n.sessions.Receive(to, replies)
		return nil
	}
	err := n.port.Send(nodeid.Endpoint{ID: to}, transport.Frame{Replies: replies})
	if err != nil {
		n.logger.Debug("replies could not be sent to a peer; its sessions must attach again", "peer", to, "error", err)
	}
	return err
}

// peer returns the instance with a raft ID, or zero if it is unknown.
func (n *Instance) peer(raft uint64) nodeid.Endpoint {
	v := n.view().Place(n.cluster(), raft)
	return nodeid.Endpoint{ID: v.Instance, Addr: v.Addr}
}

// prefer makes the port reserve some of its dials for the voters. It stores the voters, which the
// method spare reads.
func (n *Instance) prefer(voters []cluster.Voter) {
	addrs, peers := make([]string, 0, len(voters)), make([]nodeid.Endpoint, 0, len(voters))
	for _, v := range voters {
		if v.Addr != "" && v.Instance != n.instance() {
			addrs = append(addrs, v.Addr)
			peers = append(peers, nodeid.Endpoint{ID: v.Instance, Addr: v.Addr})
		}
	}
	n.voters.Store(&peers)
	n.port.Prefer(addrs)
}

// memberSpareLinks is the number of voters, besides the leader, to which an instance without a vote
// keeps links. So a change of leader needs few handshakes.
const memberSpareLinks = 2

// spare keeps links to voters that are not the leader. A voter keeps links to all other voters, so
// that an election needs no handshakes.
func (n *Instance) spare(leader nodeid.ID) {
	voters := n.voters.Load()
	if voters == nil || !n.leading.attached.Load() {
		return
	}
	count := memberSpareLinks
	if n.replica.Load() != nil {
		count = len(*voters)
	}
	n.port.Spare(leader, *voters, count)
}
