package keeper

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const (
	replyBytes      = 256 << 10 // a frame with this many bytes of replies is full
	recordBytes     = 64        // estimated bytes of one more reply in a frame
	peerAttachments = 1024
	retryAfter      = 50 * time.Millisecond // pause after a refused proposal or reply
)

// Sender is what is known of the sender of a frame.
type Sender struct {
	ID     nodeid.ID              // proved by its connection
	Life   uint64                 // which of its starts it is, as the ID has signed it
	Rights *capability.Capability // proved likewise; nil means a full instance
}

// peerState is the state of a peer. It is kept while the peer has attachments, unapplied Opens,
// queued commands or pending ends.
type peerState struct {
	id          nodeid.ID
	rights      *capability.Capability // from the last frame's connection; nil for a full instance
	life        uint64                 // likewise: the start of the instance
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

// opener returns the opener of the sessions that the peer opens on the connection of its last
// frame.
func (p *peerState) opener() lockfsm.Opener {
	return lockfsm.Opener{Instance: p.id, Capability: p.rights.Hash()}
}

// owns reports whether a peer that sent this nonce may use a session. Every voter has the nonce, so
// the opener must match too.
func (p *peerState) owns(nonce lockfsm.Nonce, s *keptSession) bool {
	return nonce == s.nonce && p.opener() == s.opener
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
	claim   claim // of its Attach, until that is applied
	peer    *peerState
	rights  *capability.Capability // those of the session
	asked   bool                   // the Attach is proposed
	live    bool                   // the Attach is applied, so the session has this epoch
	held    bool                   // its commands wait for the pace of Attach
	over    bool
	// waits means that a renewal waits for the next round. flies means that a renewal waits for the
	// confirmation of its round. Only the newest renewal in each state is kept. A proven renewal is
	// confirmed, and is acknowledged when the Attach is applied; zero means none.
	waits, flies    bool
	waitSeq, flySeq uint64
	proven          uint64
	round           uint64
	inWaiters       bool
}

// PeerReplies are the replies to one peer in a turn, in one or more frames. The sender owns the
// bytes.
type PeerReplies struct {
	Peer   nodeid.ID
	Frames [][]byte
}

// peers are the peers that the keeper knows, the attachments of their sessions, and what is to be
// sent to them.
type peers struct {
	byID map[nodeid.ID]*peerState
	// The list all contains every peer, touched contains the peers of this turn, and owing contains
	// the peers to which an Ended is still to be sent.
	all, touched, owing []*peerState
	attachments         map[lockfsm.SessionID]*attachment
}

func (t *peers) peer(id nodeid.ID) *peerState {
	p := t.byID[id]
	if p == nil {
		p = &peerState{id: id, place: len(t.all)}
		t.byID[id] = p
		t.all = append(t.all, p)
	}
	t.touch(p)
	return p
}

func (t *peers) touch(p *peerState) {
	if !p.isTouched {
		p.isTouched = true
		t.touched = append(t.touched, p)
	}
}

func (t *peers) reply(p *peerState, r *session.Reply) {
	t.touch(p)
	last := len(p.out) - 1
	if last < 0 || len(p.out[last]) >= replyBytes {
		p.out = append(p.out, make([]byte, 0, p.likely+recordBytes))
		last++
	}
	p.out[last] = r.Append(p.out[last])
}

// forget begins another term: all attachments end. It returns the peers that had attachments or
// Opens.
func (t *peers) forget() (attached []*peerState) {
	for _, p := range t.all {
		if len(p.attachments) > 0 || p.opens > 0 {
			attached = append(attached, p)
		}
		t.touch(p)
		p.attachments, p.opens, p.queued = nil, 0, 0
		p.pending, p.pendingSent = nil, 0
	}
	t.attachments, t.owing = make(map[lockfsm.SessionID]*attachment), nil
	return attached
}

// replies returns the replies to send, in order. Redirects name the given leader of the term.
// Afterwards replied must be called once for each peer.
func (t *peers) replies(now clock.Time, term uint64, leader nodeid.Endpoint) []PeerReplies {
	t.sendPending(now)
	var all []PeerReplies
	for _, p := range t.touched {
		if p.redirected {
			t.reply(p, &session.Reply{
				Kind: session.ReplyRedirect, Term: term, Leader: leader.ID, Addr: []byte(leader.Addr),
			})
		}
		if n := len(p.out); n > 0 {
			p.likely = session.Likely(p.likely, len(p.out[n-1]))
			all = append(all, PeerReplies{Peer: p.id, Frames: p.out})
		}
		p.out, p.redirected, p.ended, p.isTouched = nil, false, pendingEnd{}, false
	}
	for i, p := range t.touched {
		t.strike(p)
		t.touched[i] = nil
	}
	t.touched = t.touched[:0]
	return all
}

func (t *peers) sendPending(now clock.Time) {
	for _, p := range t.owing {
		if now.Before(p.retryAt) {
			continue
		}
		for _, o := range p.pending {
			t.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: o.session, Epoch: o.epoch, Reason: o.reason})
		}
		p.pendingSent, p.retryAt = len(p.pending), now.Add(retryAfter)
	}
}

func (t *peers) replied(now clock.Time, id nodeid.ID, accepted bool) {
	p := t.byID[id]
	if p == nil {
		return
	}
	if accepted {
		p.pending = slices.Delete(p.pending, 0, p.pendingSent)
		p.pendingSent = 0
		if len(p.pending) == 0 {
			t.settle(p)
		}
		return
	}
	p.pendingSent = 0
	for len(p.attachments) > 0 {
		a := p.attachments[len(p.attachments)-1]
		t.detach(a)
		p.owe(pendingEnd{session: a.session, epoch: a.epoch, reason: session.EndOverloaded})
	}
	if len(p.pending) > 0 {
		p.retryAt = now.Add(retryAfter)
		if !slices.Contains(t.owing, p) {
			t.owing = append(t.owing, p)
		}
	}
	t.strike(p)
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

func (t *peers) settle(p *peerState) {
	t.owing = slices.DeleteFunc(t.owing, func(o *peerState) bool { return o == p })
	t.strike(p)
}

func (t *peers) strike(p *peerState) {
	if p.isTouched || len(p.attachments)+len(p.pending)+p.opens+p.queued > 0 || t.byID[p.id] != p {
		return
	}
	delete(t.byID, p.id)
	last := t.all[len(t.all)-1]
	t.all[p.place], last.place = last, p.place
	t.all[len(t.all)-1] = nil
	t.all = t.all[:len(t.all)-1]
}

// endAll ends the attachments of a peer, whose frame was refused or dropped.
func (t *peers) endAll(p *peerState, reason session.EndReason) {
	for len(p.attachments) > 0 {
		t.end(p.attachments[0], reason)
	}
}

// down forgets what waits for a peer whose stream has ended.
func (t *peers) down(id nodeid.ID) {
	p := t.byID[id]
	if p == nil {
		return
	}
	t.touch(p)
	for len(p.attachments) > 0 {
		t.detach(p.attachments[len(p.attachments)-1])
	}
	p.pending, p.pendingSent, p.out = nil, 0, nil
	t.settle(p)
}

func (t *peers) detach(a *attachment) {
	a.over, a.waits, a.flies = true, false, false
	delete(t.attachments, a.session)
	a.peer.attachments = slices.DeleteFunc(a.peer.attachments, func(o *attachment) bool { return o == a })
}

func (t *peers) end(a *attachment, reason session.EndReason) {
	t.detach(a)
	t.reply(a.peer, &session.Reply{Kind: session.ReplyEnded, Session: a.session, Epoch: a.epoch, Reason: reason})
}

// unknown answers a message for an attachment that does not exist.
func (t *peers) unknown(p *peerState, id lockfsm.SessionID, epoch lockfsm.Epoch) {
	said := pendingEnd{session: id, epoch: epoch, reason: session.EndUnknown}
	if p.ended != said {
		p.ended = said
		t.reply(p, &session.Reply{Kind: session.ReplyEnded, Session: id, Epoch: epoch, Reason: session.EndUnknown})
	}
}

// attached returns the attachment of the peer with this epoch, or nil. A peer with two secrets has
// two connections. It uses a session only on one with the secret under which it has opened the
// session.
func (t *peers) attached(p *peerState, id lockfsm.SessionID, epoch lockfsm.Epoch) *attachment {
	a := t.attachments[id]
	if a == nil || a.peer != p || a.epoch != epoch || a.rights != p.rights && a.rights.Hash() != p.rights.Hash() {
		return nil
	}
	return a
}

// present returns the attachment on which the command of r arrived, or nil if that attachment has
// ended.
func (t *peers) present(r *lockfsm.Result) *attachment {
	if a := t.live(r.Session); a != nil && a.epoch == r.Epoch {
		return a
	}
	return nil
}

// live returns the attachment of a session, or nil if its Attach is not applied.
func (t *peers) live(id lockfsm.SessionID) *attachment {
	if a := t.attachments[id]; a != nil && a.live {
		return a
	}
	return nil
}

// renewing reports whether a renewal of the session waits for confirmation.
func (t *peers) renewing(id lockfsm.SessionID) bool {
	a := t.attachments[id]
	return a != nil && (a.waits || a.flies || a.proven != 0)
}

// holdRedirects drops the redirects of this turn.
func (t *peers) holdRedirects() {
	for _, p := range t.touched {
		p.redirected = false
	}
}

// redirect sends a peer one redirect at the end of the turn, so that it names the newest leader
// even if the leader changes in this turn.
func (t *peers) redirect(p *peerState) {
	p.redirected = true
	t.touch(p)
}
