package keeper

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// keptPeer is an instance that has sent something, for as long as anything is kept for it.
type keptPeer struct {
	id          session.Peer
	rights      *capability.Capability // of the connection on which the last frame came; nil is a full instance
	attachments []*attachment
	opens       int      // proposed, not applied
	queued      int      // bytes of commands that wait to be proposed
	out         [][]byte // replies of this turn, in frames; the last one grows
	likely      int      // bytes in a frame
	owed        []owedEnd
	owedSent    int // so many of them are in out
	retryAt     clock.Time
	redirected  bool    // in this turn
	ended       owedEnd // last unknown attachment named in this turn, so that a run of its commands is answered once
	isTouched   bool
	place       int // in the roll
}

// owedEnd is the news that an attachment is over, for a peer whose queue was full: it is repeated
// until it is accepted, since the client cannot know that something was dropped.
type owedEnd struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
	reason  session.EndReason
}

// attachment is a session's way to its client: at most one per session, the one with the highest
// epoch that was asked for.
type attachment struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
	nonce   lockfsm.Nonce // that it was asked for with
	peer    *keptPeer
	live    bool // its Attach is applied: the session's epoch in the state is this one
	over    bool
	// A renewal that arrives waits for the next round to begin, if its client still hears us; then
	// it flies until that round is confirmed. Only the newest of each is kept: acknowledging it
	// covers those before it.
	waits, flies    bool
	waitSeq, flySeq uint64
	round           uint64
	inWaiters       bool
}

// PeerReplies is what one peer is to be told in this turn: one frame, more only if there is much to
// say. The bytes belong to whoever sends them.
type PeerReplies struct {
	Peer   session.Peer
	Frames [][]byte
}

func (k *Core) peer(id session.Peer) *keptPeer {
	p := k.peers[id]
	if p == nil {
		p = &keptPeer{id: id, place: len(k.roll)}
		k.peers[id] = p
		k.roll = append(k.roll, p)
	}
	k.touch(p)
	return p
}

// touch puts p on the list of this turn, which is the order in which replies leave.
func (k *Core) touch(p *keptPeer) {
	if !p.isTouched {
		p.isTouched = true
		k.touched = append(k.touched, p)
	}
}

// reply writes a record for a peer.
func (k *Core) reply(p *keptPeer, r *session.Reply) {
	k.touch(p)
	last := len(p.out) - 1
	if last < 0 || len(p.out[last]) >= replyBytes {
		p.out = append(p.out, make([]byte, 0, p.likely+recordBytes))
		last++
	}
	p.out[last] = r.Append(p.out[last])
}

// Replies returns what is to be sent, in order. Replied must be called once for each peer.
func (k *Core) Replies() []PeerReplies {
	k.payOwed()
	var all []PeerReplies
	for _, p := range k.touched {
		if n := len(p.out); n > 0 {
			p.likely = session.Likely(p.likely, len(p.out[n-1]))
			all = append(all, PeerReplies{Peer: p.id, Frames: p.out})
		}
		p.out, p.redirected, p.ended, p.isTouched = nil, false, owedEnd{}, false
	}
	for i, p := range k.touched {
		k.strike(p)
		k.touched[i] = nil
	}
	k.touched = k.touched[:0]
	return all
}

// payOwed writes the ends that peers have not been told yet.
func (k *Core) payOwed() {
	for _, p := range k.owing {
		if k.now.Before(p.retryAt) {
			continue
		}
		for _, o := range p.owed {
			k.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: o.session, Epoch: o.epoch, Reason: o.reason})
		}
		p.owedSent, p.retryAt = len(p.owed), k.now.Add(retryAfter)
	}
}

// Replied says whether the transport took all frames for a peer. If not, the peer loses its
// attachments, because something of each may have been in what was dropped; their clients are told
// when there is room again.
func (k *Core) Replied(now clock.Time, id session.Peer, accepted bool) {
	p := k.peers[id]
	if p == nil {
		return
	}
	if accepted {
		p.owed = slices.Delete(p.owed, 0, p.owedSent)
		p.owedSent = 0
		if len(p.owed) == 0 {
			k.settle(p)
		}
		return
	}
	p.owedSent = 0
	for len(p.attachments) > 0 {
		a := p.attachments[len(p.attachments)-1]
		k.detach(a)
		p.owe(owedEnd{session: a.session, epoch: a.epoch, reason: session.EndOverloaded})
	}
	if len(p.owed) > 0 {
		p.retryAt = now.Add(retryAfter)
		if !slices.Contains(k.owing, p) {
			k.owing = append(k.owing, p)
		}
	}
	k.strike(p)
}

// owe notes an end that the peer was not told of, once per session.
func (p *keptPeer) owe(end owedEnd) {
	for i := range p.owed {
		if p.owed[i].session == end.session {
			p.owed[i] = end
			return
		}
	}
	if len(p.owed) < peerAttachments {
		p.owed = append(p.owed, end)
	}
}

// settle takes a peer off the list of those who are owed something.
func (k *Core) settle(p *keptPeer) {
	k.owing = slices.DeleteFunc(k.owing, func(o *keptPeer) bool { return o == p })
	k.strike(p)
}

// strike forgets a peer for which nothing is kept.
func (k *Core) strike(p *keptPeer) {
	if p.isTouched || len(p.attachments)+len(p.owed)+p.opens+p.queued > 0 || k.peers[p.id] != p {
		return
	}
	delete(k.peers, p.id)
	last := k.roll[len(k.roll)-1]
	k.roll[p.place], last.place = last, p.place
	k.roll[len(k.roll)-1] = nil
	k.roll = k.roll[:len(k.roll)-1]
}

// Dropped says that a frame of the peer was not even read, because too much waits. Its attachments
// end.
func (k *Core) Dropped(now clock.Time, id session.Peer) {
	k.begin(now)
	if p := k.peers[id]; p != nil {
		for len(p.attachments) > 0 {
			k.end(p.attachments[0], session.EndOverloaded)
		}
	}
}

// Down says that the last stream to a peer has ended: its attachments are over, its sessions live
// on to the end of their leases.
func (k *Core) Down(now clock.Time, id session.Peer) {
	k.begin(now)
	if _, ok := k.asking[id]; ok {
		delete(k.asking, id)
		k.askers = slices.DeleteFunc(k.askers, func(a session.Peer) bool { return a == id })
	}
	p := k.peers[id]
	if p == nil {
		return
	}
	k.touch(p)
	for len(p.attachments) > 0 {
		k.detach(p.attachments[len(p.attachments)-1])
	}
	p.owed, p.owedSent, p.out = nil, 0, nil
	k.settle(p)
}

// detach ends an attachment without a word.
func (k *Core) detach(a *attachment) {
	a.over, a.waits, a.flies = true, false, false
	delete(k.attachments, a.session)
	a.peer.attachments = slices.DeleteFunc(a.peer.attachments, func(o *attachment) bool { return o == a })
}

// end ends an attachment and says so.
func (k *Core) end(a *attachment, reason session.EndReason) {
	k.detach(a)
	k.reply(a.peer, &session.Reply{Kind: session.ReplyEnded, Session: a.session, Epoch: a.epoch, Reason: reason})
}

// unknown answers something that came on an attachment that is not.
func (k *Core) unknown(p *keptPeer, id lockfsm.SessionID, epoch lockfsm.Epoch) {
	said := owedEnd{session: id, epoch: epoch, reason: session.EndUnknown}
	if p.ended != said {
		p.ended = said
		k.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: id, Epoch: epoch, Reason: session.EndUnknown})
	}
}

// redirect tells a peer who leads, once a turn.
func (k *Core) redirect(p *keptPeer) {
	if !p.redirected {
		p.redirected = true
		leader := k.role.Leader
		k.reply(p, &session.Reply{
			Kind: session.ReplyRedirect, Term: k.role.Term, Leader: leader.Peer, Addr: []byte(leader.Addr),
		})
	}
}

// remember notes a peer that wants to know who leads. When there are too many the oldest is
// forgotten: it will ask again.
func (k *Core) remember(id session.Peer) {
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

// tellAskers tells everybody who has asked in vain who leads now. They stay remembered until their
// stream ends: the next leader may fall silent too, and then nobody else would tell them.
func (k *Core) tellAskers() {
	for _, id := range k.askers {
		k.redirect(k.peer(id))
	}
}
