package keeper

import (
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file is the way of commands through the keeper: checked by their header, passed on byte for
// byte but for Open, one proposal per turn.

// piece is a run of commands that waits to be proposed: some of one attachment, or one Open.
type piece struct {
	peer  *keptPeer
	on    *attachment // nil: an Open
	nonce lockfsm.Nonce
	bytes []byte
}

// Receive is ReceiveUnder for a full instance, which may do everything.
func (k *Core) Receive(now clock.Time, from session.Peer, renewals, commands []byte) {
	k.ReceiveUnder(now, from, nil, renewals, commands)
}

// ReceiveUnder takes one frame of a peer, whose certificate grants these rights on the connection
// on which it came. Nil is a full instance. The bytes belong to the core from then on.
func (k *Core) ReceiveUnder(now clock.Time, from session.Peer, rights *capability.Capability, renewals,
	commands []byte) {
	k.begin(now)
	if from.IsZero() {
		return
	}
	if !k.serving() {
		if !k.role.Leading {
			k.redirect(k.peer(from))
		}
		k.remember(from)
		return
	}
	p := k.peer(from)
	p.rights = rights
	// Commands first: the renewal that goes with an Attach travels in the same frame.
	if k.takeCommands(p, commands) && k.takeRenewals(p, renewals) {
		return
	}
	for len(p.attachments) > 0 {
		k.end(p.attachments[0], session.EndRefused)
	}
}

// takeCommands queues the commands of a frame, in runs of the same attachment. It reports false if
// there is something among them that no client may send.
func (k *Core) takeCommands(p *keptPeer, frame []byte) bool {
	run := piece{peer: p}
	for len(frame) > 0 {
		command, rest, err := lockfsm.Next(frame)
		if err != nil {
			break
		}
		h, err := lockfsm.Peek(command)
		if err != nil {
			break
		}
		size := len(frame) - len(rest)
		next, ok := k.admit(p, h, command)
		if !ok {
			break
		}
		if next.peer == nil { // answered without the log
			k.enqueue(run)
			run = piece{peer: p}
		} else if next.on == nil { // an Open, written anew
			k.enqueue(run)
			k.enqueue(next)
			run = piece{peer: p}
		} else if next.on == run.on {
			run.bytes = run.bytes[:len(run.bytes)+size] // it lies right behind
		} else {
			k.enqueue(run)
			run = next
			run.bytes = frame[:size]
		}
		frame = rest
	}
	k.enqueue(run)
	return len(frame) == 0
}

// admit judges one command. It returns the piece to which the command belongs, without its bytes;
// one without a peer if the command is not to be proposed; false if no client may send it.
func (k *Core) admit(p *keptPeer, h lockfsm.Header, command []byte) (piece, bool) {
	switch h.Kind {
	case lockfsm.Open:
		return k.admitOpen(p, command)
	case lockfsm.Attach:
		return k.admitAttach(p, h, command)
	case lockfsm.Leaving, lockfsm.Close, lockfsm.Acquire, lockfsm.Release, lockfsm.Cancel, lockfsm.Detach:
		if a := k.attachments[h.Session]; a != nil && a.peer == p && a.epoch == h.Epoch {
			if p.rights != nil && h.Kind == lockfsm.Acquire && !k.mayAcquire(p, command) {
				return piece{}, true
			}
			return piece{peer: p, on: a}, true
		}
		k.unknown(p, h.Session, h.Epoch)
		return piece{}, true
	}
	return piece{}, false
}

// pendingOpen is an Open that was let pass and is not applied yet.
type pendingOpen struct {
	peer   *keptPeer
	opener lockfsm.Opener
}

// admitOpen lets an Open pass once for each nonce, with what the session is to belong to, which is
// not the client's to say.
func (k *Core) admitOpen(p *keptPeer, command []byte) (piece, bool) {
	c, err := lockfsm.Decode(command)
	if err != nil {
		return piece{}, false
	}
	if k.entering.left > 0 {
		return piece{}, true // it will ask again; how many it has opened is not known yet
	}
	before := k.opens[c.Nonce].peer
	if before != p && (p.opens >= peerOpens || before != nil) {
		return piece{}, true // it will ask again, or is not the one that has asked
	}
	opener, ok := k.openerOf(p, c.Record)
	if !ok {
		return piece{}, false
	}
	if before == nil && k.opened[p.id]+p.opens >= peerSessions {
		k.reply(p, &session.Reply{
			Kind: session.ReplyOpened, Nonce: c.Nonce, Code: lockfsm.TooManySessions, Term: k.role.Term,
		})
		return piece{}, true
	}
	if before != nil {
		before.opens--
		k.touch(before)
	}
	p.opens++
	k.opens[c.Nonce] = pendingOpen{p, opener}
	if before != nil {
		return piece{}, true
	}
	c.Opener = opener
	if p.rights != nil && k.Stamp != nil {
		c.Record = k.Stamp(p.rights, c.Record)
	}
	return piece{peer: p, nonce: c.Nonce, bytes: c.Append(nil)}, true
}

// admitAttach begins an attachment, which takes the place of one with a lower epoch. A peer to
// which the session does not belong is refused here, before it can displace the legitimate
// attachment.
func (k *Core) admitAttach(p *keptPeer, h lockfsm.Header, command []byte) (piece, bool) {
	nonce, err := lockfsm.PeekNonce(command)
	if err != nil {
		return piece{}, false
	}
	if a := k.attachments[h.Session]; a != nil && a.peer == p && a.epoch == h.Epoch {
		return piece{}, true // the same frame again: its answer is on its way
	}
	s := k.session(h.Session)
	if mine := s != nil && k.owns(p, nonce, s); !mine || h.Epoch <= s.epoch {
		code := lockfsm.Stale
		if !mine {
			code = lockfsm.NoSession
		}
		k.reply(p, &session.Reply{
			Kind: session.ReplyAttached, Session: h.Session, Epoch: h.Epoch, Code: code, Term: k.role.Term,
		})
		return piece{}, true
	}
	return k.beginAttachment(p, h, nonce), true
}

func (k *Core) beginAttachment(p *keptPeer, h lockfsm.Header, nonce lockfsm.Nonce) piece {
	old := k.attachments[h.Session]
	if old != nil && h.Epoch <= old.epoch {
		k.unknown(p, h.Session, h.Epoch)
		return piece{}
	}
	if old != nil && old.peer == p {
		k.detach(old)
	} else if old != nil {
		k.end(old, session.EndUnknown)
	}
	if len(p.attachments) >= peerAttachments {
		k.reply(p, &session.Reply{
			Kind: session.ReplyEnded, Session: h.Session, Epoch: h.Epoch, Reason: session.EndOverloaded,
		})
		return piece{}
	}
	a := &attachment{session: h.Session, epoch: h.Epoch, nonce: nonce, peer: p}
	k.attachments[h.Session] = a
	p.attachments = append(p.attachments, a)
	return piece{peer: p, on: a}
}

// enqueue puts a piece behind what waits. What does not fit ends its attachment.
func (k *Core) enqueue(p piece) {
	if len(p.bytes) == 0 {
		return
	}
	if k.queued+len(p.bytes) > queuedBytes || p.peer.queued+len(p.bytes) > peerBytes {
		k.refuse(p)
		return
	}
	k.queued += len(p.bytes)
	p.peer.queued += len(p.bytes)
	k.queue = append(k.queue, p)
}

// refuse ends what a piece belongs to, since it will not be proposed.
func (k *Core) refuse(p piece) {
	if p.on == nil {
		k.forgetOpen(p.nonce)
	} else if !p.on.over {
		k.end(p.on, session.EndOverloaded)
	}
}

func (k *Core) forgetOpen(nonce lockfsm.Nonce) *keptPeer {
	p := k.opens[nonce].peer
	if p != nil {
		p.opens--
		delete(k.opens, nonce)
		k.touch(p)
	}
	return p
}

// Proposal returns the blob to propose in this turn, and its term; nil if there is nothing to
// propose. The leader's wall clock leads the blob. Proposed must be called with what became of it.
// The bytes are fresh.
func (k *Core) Proposal(wallUnixMS int64) (term uint64, blob []byte) {
	k.blob, k.blobExpires = k.blob[:0], 0
	if !k.led || k.now.Before(k.proposeAt) || len(k.queue) == 0 && !k.due() {
		return 0, nil
	}
	size := 0
	for _, p := range k.queue {
		if size >= blobBytes {
			break
		}
		size += len(p.bytes)
		k.blob = append(k.blob, p)
	}
	blob = make([]byte, 0, size+64+32*min(len(k.expireDue), expiresPerBlob))
	blob = lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: wallUnixMS}.Append(blob)
	if k.bearing() {
		blob = lockfsm.Command{Kind: lockfsm.Born}.Append(blob)
	}
	if k.graceDue && !k.graceSent {
		blob = lockfsm.Command{Kind: lockfsm.EndGrace}.Append(blob)
	}
	if a := k.adoptDue; a != nil && k.born {
		blob = lockfsm.Command{
			Kind: lockfsm.Adopt, TTL: a.ttl, Settings: a.settings, SessionBytes: a.budgets.Session,
			GroupBytes: a.budgets.Group,
		}.Append(blob)
	}
	if k.raiseDue != 0 && k.born {
		blob = lockfsm.Command{Kind: lockfsm.Raise, Version: k.raiseDue}.Append(blob)
	}
	for _, id := range k.expireDue[:min(len(k.expireDue), expiresPerBlob)] {
		blob = lockfsm.Command{Kind: lockfsm.Expire, Session: id, Term: k.role.Term}.Append(blob)
		k.blobExpires++
	}
	for _, p := range k.blob {
		blob = append(blob, p.bytes...)
	}
	k.queue = k.queue[:copy(k.queue, k.queue[len(k.blob):])]
	clear(k.queue[len(k.queue):cap(k.queue)])
	return k.role.Term, blob
}

// Proposed says whether the log took the last blob. If not, its attachments end; what the keeper
// itself wants stays due, and an expiring session stays marked.
func (k *Core) Proposed(accepted bool) {
	for _, p := range k.blob {
		k.queued -= len(p.bytes)
		p.peer.queued -= len(p.bytes)
		k.touch(p.peer)
		if !accepted {
			k.refuse(p)
		}
	}
	if !accepted {
		k.proposeAt = k.now.Add(retryAfter)
		return
	}
	k.bornSent = k.bornSent || k.allBound
	k.graceSent = k.graceSent || k.graceDue
	if k.born {
		k.adoptDue, k.raiseDue = nil, 0
	}
	k.expireDue = k.expireDue[:copy(k.expireDue, k.expireDue[k.blobExpires:])]
}
