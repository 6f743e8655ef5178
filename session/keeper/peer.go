package keeper

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// peerState is the state of a peer. It is kept while the peer has attachments, unapplied Opens,
// queued commands or pending ends.
type peerState struct {
	id          nodeid.ID
	rights      *capability.Capability // from the last frame's connection; nil for a full instance
	attachments []*attachment
	opens       int // commands of the kind Open that are admitted and not applied
	queued      int // bytes of commands that wait to be proposed
	out         [][]byte
	likely      int
	pending     []pendingEnd
	pendingSent int // number of pending ends that the replies contain
	retryAt     clock.Time
	redirected  bool
	ended       pendingEnd // the last unknown attachment that was answered in this turn
	isTouched   bool
	place       int // index in Core.all
}

// pendingEnd informs a peer of the end of an attachment. It is kept until the transport accepts it.
type pendingEnd struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
	reason  session.EndReason
}

// attachment connects a session to its client. A session has at most one attachment: the one with
// the highest requested epoch.
type attachment struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
	nonce   lockfsm.Nonce
	peer    *peerState
	rights  *capability.Capability // those of the session
	live    bool                   // the Attach is applied, so the session has this epoch
	held    bool                   // its commands wait for the pace of Attach
	over    bool
	// waits means that a renewal waits for the next round. flies means that a renewal waits for the
	// confirmation of its round. Only the newest renewal in each state is kept.
	waits, flies    bool
	waitSeq, flySeq uint64
	round           uint64
	inWaiters       bool
}

// PeerReplies are the replies to one peer in a turn, in one or more frames. The sender owns the
// bytes.
type PeerReplies struct {
	Peer   nodeid.ID
	Frames [][]byte
}

func (k *Core) peer(id nodeid.ID) *peerState {
	p := k.peers[id]
	if p == nil {
		p = &peerState{id: id, place: len(k.all)}
		k.peers[id] = p
		k.all = append(k.all, p)
	}
	k.touch(p)
	return p
}

func (k *Core) touch(p *peerState) {
	if !p.isTouched {
		p.isTouched = true
		k.touched = append(k.touched, p)
	}
}

func (k *Core) reply(p *peerState, r *session.Reply) {
	k.touch(p)
	last := len(p.out) - 1
	if last < 0 || len(p.out[last]) >= replyBytes {
		p.out = append(p.out, make([]byte, 0, p.likely+recordBytes))
		last++
	}
	p.out[last] = r.Append(p.out[last])
}

// Replies returns the replies to send, in order. Replied must be called once for each peer.
func (k *Core) Replies() []PeerReplies {
	k.sendPending()
	var all []PeerReplies
	for _, p := range k.touched {
		if n := len(p.out); n > 0 {
			p.likely = session.Likely(p.likely, len(p.out[n-1]))
			all = append(all, PeerReplies{Peer: p.id, Frames: p.out})
		}
		p.out, p.redirected, p.ended, p.isTouched = nil, false, pendingEnd{}, false
	}
	for i, p := range k.touched {
		k.strike(p)
		k.touched[i] = nil
	}
	k.touched = k.touched[:0]
	return all
}

func (k *Core) sendPending() {
	for _, p := range k.owing {
		if k.now.Before(p.retryAt) {
			continue
		}
		for _, o := range p.pending {
			k.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: o.session, Epoch: o.epoch, Reason: o.reason})
		}
		p.pendingSent, p.retryAt = len(p.pending), k.now.Add(retryAfter)
	}
}

// Replied reports whether the transport accepted all frames for a peer. Otherwise all attachments
// of the peer end. Their clients are informed when the transport accepts frames again.
func (k *Core) Replied(now clock.Time, id nodeid.ID, accepted bool) {
	p := k.peers[id]
	if p == nil {
		return
	}
	if accepted {
		p.pending = slices.Delete(p.pending, 0, p.pendingSent)
		p.pendingSent = 0
		if len(p.pending) == 0 {
			k.settle(p)
		}
		return
	}
	p.pendingSent = 0
	for len(p.attachments) > 0 {
		a := p.attachments[len(p.attachments)-1]
		k.detach(a)
		p.owe(pendingEnd{session: a.session, epoch: a.epoch, reason: session.EndOverloaded})
	}
	if len(p.pending) > 0 {
		p.retryAt = now.Add(retryAfter)
		if !slices.Contains(k.owing, p) {
			k.owing = append(k.owing, p)
		}
	}
	k.strike(p)
}

func (p *peerState) owe(end pendingEnd) {
	for i := range p.pending {
		if p.pending[i].session == end.session {
			p.pending[i] = end
			return
		}
	}
	if len(p.pending) < peerAttachments {
		p.pending = append(p.pending, end)
	}
}

func (k *Core) settle(p *peerState) {
	k.owing = slices.DeleteFunc(k.owing, func(o *peerState) bool { return o == p })
	k.strike(p)
}

func (k *Core) strike(p *peerState) {
	if p.isTouched || len(p.attachments)+len(p.pending)+p.opens+p.queued > 0 || k.peers[p.id] != p {
		return
	}
	delete(k.peers, p.id)
	last := k.all[len(k.all)-1]
	k.all[p.place], last.place = last, p.place
	k.all[len(k.all)-1] = nil
	k.all = k.all[:len(k.all)-1]
}

// Dropped reports that a frame of the peer was dropped, because too many bytes wait. The peer's
// attachments end.
func (k *Core) Dropped(now clock.Time, id nodeid.ID) {
	k.begin(now)
	if p := k.peers[id]; p != nil {
		for len(p.attachments) > 0 {
			k.end(p.attachments[0], session.EndOverloaded)
		}
	}
}

// Down implements [Keeper.Down]. The attachments of the peer end, and its sessions remain until
// their leases end.
func (k *Core) Down(now clock.Time, id nodeid.ID) {
	k.begin(now)
	if _, ok := k.asking[id]; ok {
		delete(k.asking, id)
		k.askers = slices.DeleteFunc(k.askers, func(a nodeid.ID) bool { return a == id })
	}
	p := k.peers[id]
	if p == nil {
		return
	}
	k.touch(p)
	for len(p.attachments) > 0 {
		k.detach(p.attachments[len(p.attachments)-1])
	}
	p.pending, p.pendingSent, p.out = nil, 0, nil
	k.settle(p)
}

func (k *Core) detach(a *attachment) {
	a.over, a.waits, a.flies = true, false, false
	delete(k.attachments, a.session)
	a.peer.attachments = slices.DeleteFunc(a.peer.attachments, func(o *attachment) bool { return o == a })
}

func (k *Core) end(a *attachment, reason session.EndReason) {
	k.detach(a)
	k.reply(a.peer, &session.Reply{Kind: session.ReplyEnded, Session: a.session, Epoch: a.epoch, Reason: reason})
}

// k.unknown answers a message for an attachment that does not exist.
func (k *Core) unknown(p *peerState, id lockfsm.SessionID, epoch lockfsm.Epoch) {
	said := pendingEnd{session: id, epoch: epoch, reason: session.EndUnknown}
	if p.ended != said {
		p.ended = said
		k.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: id, Epoch: epoch, Reason: session.EndUnknown})
	}
}

// redirect sends a peer a redirect to the leader, at most once per turn.
func (k *Core) redirect(p *peerState) {
	if !p.redirected {
		p.redirected = true
		leader := k.role.Leader
		k.reply(p, &session.Reply{
			Kind: session.ReplyRedirect, Term: k.role.Term, Leader: leader.ID, Addr: []byte(leader.Addr),
		})
	}
}

// remember records a peer that asked for the leader. At the limit it removes the oldest peer, which
// will ask again.
func (k *Core) remember(id nodeid.ID) {
	if _, ok := k.asking[id]; ok {
		return
	}
	if len(k.askers) == maxAskers {
		delete(k.asking, k.askers[0])
		k.askers = slices.Delete(k.askers, 0, 1)
	}
	k.asking[id] = struct{}{}
	k.askers = append(k.askers, id)
}

// tellAskers redirects all recorded peers to the current leader. They remain recorded until their
// stream ends, because they may need the next leader too.
func (k *Core) tellAskers() {
	for _, id := range k.askers {
		k.redirect(k.peer(id))
	}
}
