package instance

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

type inbound struct{ n *Instance }

func (in inbound) Frame(from transport.Identity, f transport.Frame) {
	rights, ok := from.Peer.Allowed()
	if !ok {
		return // the peer has proved nothing, so it has no rights
	}
	if r := in.n.replica.Load(); r != nil {
		if len(f.Raft) > 0 {
			in.raft(r, from, &f)
		}
		if f.Retired {
			from := in.ended(from)
			r.peerLost(from)
			in.n.cluster().PeerLost(from)
		}
		if len(f.Renewals)+len(f.Commands) > 0 {
			by := keeper.Sender{ID: from.Instance, Life: from.Life, Rights: rights}
			r.keeper.ReceiveFrom(by, f.Renewals, f.Commands)
		}
	} else if len(f.Renewals)+len(f.Commands) > 0 {
		// If the reply is lost, the client asks another voter after a while.
		_ = in.n.reply(from.Instance, session.NoVoter())
	}
	if len(f.Replies) > 0 {
		in.n.sessions.Receive(from.Instance, f.Replies)
	}
}

// ended returns the instance that a peer may report as ended: the peer itself, whatever raft ID it
// claims.
func (in inbound) ended(from transport.Identity) nodeid.ID {
	return from.Instance
}

// raft passes messages to the log if the sender owns the raft ID that it claims. If that raft ID
// was removed, the sender is informed.
func (in inbound) raft(r *ownReplica, from transport.Identity, f *transport.Frame) {
	if !in.n.voterIs(from) {
		c := in.n.cluster()
		if c == nil {
			return
		}
		if is, ok := c.Voter(from.Raft); ok {
			in.n.warnings.claims.warn(in.n.env.clock.Now(), in.n.logger,
				"an instance sends raft messages with the replica ID of another one, and they "+
					"are dropped: stop the instance named here; if it is not yours, replace the secret",
				"instance", from.Instance, "addr", from.Addr, "raft", nodeid.Hex(from.Raft), "of", is.Instance,
				"of_addr", is.Addr)
			return
		}
		c.RemovedPeer(from.Instance, from.Addr)
		return
	}
	step := r.log.Step
	if f.Duplicate {
		step = r.log.StepDuplicate
	}
	for _, m := range f.Raft {
		step(m)
	}
}

func (in inbound) Down(peer transport.Identity, _ error) {
	if r := in.n.replica.Load(); r != nil {
		r.keeper.Down(peer.Instance)
		r.peerLost(in.ended(peer))
	}
	in.n.sessions.Down(peer.Instance)
	if c := in.n.cluster(); c != nil {
		c.Look()
	}
}

// MaySendSnapshot returns an error if this instance has no replica, or if the sender is not in the
// configuration.
func (in inbound) MaySendSnapshot(from transport.Identity, _ *raftpb.Message) error {
	_, err := in.n.fed(from)
	return err
}

func (in inbound) Snapshot(from transport.Identity, m *raftpb.Message) error {
	r, err := in.n.fed(from)
	if err == nil {
		r.log.Step(m)
	}
	return err
}

func (n *Instance) fed(from transport.Identity) (*ownReplica, error) {
	r := n.replica.Load()
	switch {
	case r == nil:
		return nil, errNoVoter
	case !n.voterIs(from):
		return nil, errNoPeer
	}
	return r, nil
}

func (n *Instance) voterIs(from transport.Identity) bool {
	c := n.cluster()
	return c != nil && from.Peer.Tier == capability.Root && n.view().Speaks(c, from.Raft, from.Instance)
}
