package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file connects the packages. It passes frames and calls between the port and the packages. A
// message to this instance itself goes directly to the receiving package.

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
			r.keeper.ReceiveUnder(from.Instance, rights, f.Renewals, f.Commands)
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
			in.n.claims.warn(in.n, "an instance sends raft messages with the replica ID of another one, and they "+
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

func (n *Instance) view() *replica.View { return n.replica.Load().view() }

func (r *ownReplica) view() *replica.View {
	if r == nil {
		return nil
	}
	return r.View
}

func (n *Instance) answers() transport.Services {
	guard := &queries.Guard{Started: func() bool { return n.cluster() != nil }, Translate: n.config.Translate}
	return transport.Services{
		List: []transport.Service{
			queries.Query(n.queryHere),
			{Desc: &query.Admin_ServiceDesc, Impl: n.config.Admin},
			queries.Cluster(n.group, disks{n}),
		},
		Intercept: guard.Intercept,
	}
}

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
	r.keeper.Receive(to.ID, renewals, commands)
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

type outbound struct {
	port   *transport.Port
	gossip *transport.Gossip
}

// The function foreign returns a *cluster.ForeignError if err reports a process of another cluster,
// and otherwise nil.
func foreign(err error) error {
	if !errors.Is(err, transport.ErrForeign) {
		return nil
	}
	why := credentials.Explain(err)
	// Explain adds this prefix to errors that it does not know. Here it would be wrong, because such
	// an error does not come from the handshake.
	if strings.HasPrefix(why, "the TLS handshake failed: ") {
		why = strings.TrimPrefix(err.Error(), transport.ErrForeign.Error()+": ")
	}
	return &cluster.ForeignError{Why: plain.Text(why)}
}

// uneven returns a *cluster.SilentError if err means that only one side uses TLS, that this machine
// has no route, or that the two builds have different rules. Otherwise it returns nil.
func uneven(err error) error {
	switch {
	case errors.Is(err, transport.ErrPlain):
		return &cluster.SilentError{Why: credentials.OtherPlain}
	case errors.Is(err, transport.ErrSecured):
		return &cluster.SilentError{Why: credentials.OwnPlain}
	case errors.Is(err, transport.ErrRules):
		_, why, _ := strings.Cut(err.Error(), transport.OtherRules)
		return &cluster.SilentError{Why: plain.Text(transport.OtherRules + why)}
	case errors.Is(err, transport.ErrNoRoute):
		number, _ := errors.AsType[syscall.Errno](err)
		return &cluster.SilentError{Why: fmt.Sprintf("this machine has no address or no route for it (%v): repair its "+
			"network, or take the address out of Join and out of the records of its names", number)}
	}
	return nil
}

func (o outbound) Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) ([]byte, nodeid.ID, error) {
	answer, from, err := queries.Found(ctx, o.port.To(addr, to), question)
	return answer, from, clusterError(err)
}

func (o outbound) QueryStatus(ctx context.Context, addr string, to nodeid.ID,
	q cluster.StatusQuery) (cluster.StatusReply,
	error) {
	a, err := queries.QueryStatus(ctx, o.port.To(addr, to), q)
	return a, clusterError(err)
}

func (o outbound) Probe(ctx context.Context, addr string, to nodeid.ID) error {
	return clusterError(queries.Probe(ctx, o.port.To(addr, to)))
}

// other returns the error of package cluster for a transport.ErrOther.
func other(err error) error {
	if who, ok := errors.AsType[*transport.OtherError](err); ok {
		return &cluster.OtherError{Answered: who.Answered}
	}
	return cluster.ErrOther
}

func clusterError(err error) error {
	for _, kind := range [...][2]error{
		{transport.ErrRefused, cluster.ErrRefused}, {transport.ErrForeign, foreign(err)},
		{transport.ErrOther, other(err)},
	} {
		if errors.Is(err, kind[0]) {
			return errors.Join(kind[1], err)
		}
	}
	if why := uneven(err); why != nil {
		return errors.Join(why, err)
	}
	return err
}

func (o outbound) WriteTo(b []byte, addr string) error { return o.gossip.WriteTo(b, addr) }

func (o outbound) ReadPacket(ctx context.Context) ([]byte, string, time.Time, error) {
	select {
	case p := <-o.gossip.Packets():
		return p.Data, p.From, p.At, nil
	case <-ctx.Done():
		return nil, "", time.Time{}, ctx.Err()
	}
}

func (o outbound) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	return o.gossip.DialStream(ctx, addr)
}

func (o outbound) AcceptStream(ctx context.Context) (net.Conn, error) {
	select {
	case conn := <-o.gossip.Streams():
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
