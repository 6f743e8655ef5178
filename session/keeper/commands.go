package keeper

import (
	"bytes"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file checks the headers of commands and makes one proposal per turn. It changes only the
// bytes of Open.

const (
	peerOpens = 64
	// peerSessions bounds the sessions of one peer that have not expired.
	peerSessions = 256
)

// ReceiveFrom implements [Keeper.ReceiveFrom].
func (k *Core) ReceiveFrom(now clock.Time, by Sender, renewals, commands []byte) {
	k.begin(now)
	from := by.ID
	if from.IsZero() {
		return
	}
	if !k.group.serving() {
		if !k.role.Leading {
			k.peers.redirect(k.peers.peer(from))
		}
		k.askers.remember(from)
		return
	}
	p := k.peers.peer(from)
	p.rights, p.life = by.Rights, by.Life
	// Commands are read first, because the renewal of an Attach is in the same frame.
	if k.takeCommands(p, commands) && k.takeRenewals(p, renewals) {
		return
	}
	k.peers.endAll(p, session.EndRefused)
}

// takeCommands adds the commands of a frame to the queue. It returns false for a malformed frame or
// a command that no client may send.
func (k *Core) takeCommands(p *peerState, frame []byte) bool {
	run := commandRun{peer: p}
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
		if next.peer == nil {
			k.enqueue(run)
			run = commandRun{peer: p}
		} else if next.on == nil { // an Open, which is encoded again
			k.enqueue(run)
			k.enqueue(next)
			run = commandRun{peer: p}
		} else if next.on == run.on {
			run.bytes = run.bytes[:len(run.bytes)+size]
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

// admit checks one command and returns the run to which it belongs. The caller adds the bytes,
// except for an Open. A run without a peer means that the command must not be proposed. The
// result is false if no client may send the command.
//
// A command of a later version of the rules is answered by its header alone. This build may not
// have its kind and cannot decode its fields, but its sender is no faulty client: it has a newer
// build, and its locks must remain.
func (k *Core) admit(p *peerState, h lockfsm.Header, command []byte) (commandRun, bool) {
	if h.Rules > k.group.rules {
		k.peers.reply(p, &session.Reply{
			Kind: session.ReplyUnsupported, Session: h.Session, Epoch: h.Epoch, Number: h.Number, Command: h.Kind,
			Rules: k.group.rules,
		})
		return commandRun{}, true
	}
	switch h.Kind {
	case lockfsm.Open:
		return k.admitOpen(p, command)
	case lockfsm.Attach:
		return k.admitAttach(p, h, command)
	case lockfsm.Leaving, lockfsm.Close, lockfsm.Acquire, lockfsm.Release, lockfsm.Cancel, lockfsm.Detach,
		lockfsm.InUse, lockfsm.Lapse, lockfsm.Downgrade:
		return k.admitOn(p, h, command), true
	}
	if laterKind(h.Kind) {
		return k.admitOn(p, h, command), true
	}
	return commandRun{}, false
}

// admitOn admits a command on its attachment.
func (k *Core) admitOn(p *peerState, h lockfsm.Header, command []byte) commandRun {
	a := k.peers.attached(p, h.Session, h.Epoch)
	if a == nil {
		k.peers.unknown(p, h.Session, h.Epoch)
		return commandRun{}
	}
	if p.rights != nil && h.Kind == lockfsm.Acquire && !k.mayAcquire(p, command) {
		return commandRun{}
	}
	return commandRun{peer: p, on: a}
}

// admitOpen admits one Open for each nonce. It sets the opener and the rights of the session,
// whatever the client has sent.
func (k *Core) admitOpen(p *peerState, command []byte) (commandRun, bool) {
	c, err := lockfsm.Decode(command)
	if err != nil {
		return commandRun{}, false
	}
	if k.leases.entering.left > 0 {
		return commandRun{}, true // the client retries; the number of its sessions is not known yet
	}
	before := k.opens[c.Nonce].peer
	if before != p && (p.opens >= peerOpens || before != nil) {
		return commandRun{}, true // the client retries, or another peer has sent this nonce
	}
	if k.Vouch != nil && !k.Vouch(p.id, p.rights, c.Record) {
		return commandRun{}, false
	}
	if k.Outdated != nil && p.rights == nil {
		if why := k.Outdated(c.Record); why != (session.Outdated{}) {
			k.peers.reply(p, &session.Reply{Kind: session.ReplyOpened, Nonce: c.Nonce, Code: lockfsm.Unsupported,
				Term: k.role.Term, Outdated: why})
			return commandRun{}, true
		}
	}
	if before == nil && k.leases.opened.count[p.id]+p.opens >= peerSessions {
		k.peers.reply(p, &session.Reply{
			Kind: session.ReplyOpened, Nonce: c.Nonce, Code: lockfsm.TooManySessions, Term: k.role.Term,
		})
		return commandRun{}, true
	}
	if before != nil {
		before.opens--
		k.peers.touch(before)
	}
	p.opens++
	if before != nil {
		return commandRun{}, true
	}
	c.Opener, c.Life, c.Rights = p.opener(), p.life, p.rights.Text()
	k.opens[c.Nonce] = pendingOpen{p, c.Opener, c.Life}
	if p.rights != nil && k.Stamp != nil {
		c.Record = k.Stamp(p.rights, c.Record)
	}
	return commandRun{peer: p, nonce: c.Nonce, bytes: c.Append(nil)}, true
}

// admitAttach begins an attachment, which replaces an attachment with a lower epoch. It refuses a
// peer that does not own the session. Otherwise that peer could end the attachment of the owner.
func (k *Core) admitAttach(p *peerState, h lockfsm.Header, command []byte) (commandRun, bool) {
	nonce, since, former, err := lockfsm.PeekAttach(command)
	if err != nil {
		return commandRun{}, false
	}
	if a := k.peers.attached(p, h.Session, h.Epoch); a != nil {
		return commandRun{}, true // a duplicate, answered when the first Attach is applied
	}
	s := k.leases.session(h.Session)
	if mine := s != nil && p.owns(nonce, s); !mine || h.Epoch <= s.epoch {
		code := lockfsm.Stale
		if !mine {
			code = lockfsm.NoSession
		}
		k.peers.reply(p, &session.Reply{
			Kind: session.ReplyAttached, Session: h.Session, Epoch: h.Epoch, Code: code, Term: k.role.Term,
		})
		return commandRun{}, true
	}
	run := k.beginAttachment(p, h, nonce)
	if run.on != nil {
		run.on.claim = claim{since, bytes.Clone(former)}
		run.pace = k.paces.of(s.opener, k.now)
	}
	return run, true
}

func (k *Core) beginAttachment(p *peerState, h lockfsm.Header, nonce lockfsm.Nonce) commandRun {
	old := k.peers.attachments[h.Session]
	if old != nil && h.Epoch <= old.epoch {
		k.peers.unknown(p, h.Session, h.Epoch)
		return commandRun{}
	}
	if old != nil && old.peer == p {
		k.peers.detach(old)
	} else if old != nil {
		k.peers.end(old, session.EndUnknown)
	}
	if len(p.attachments) >= peerAttachments {
		k.peers.reply(p, &session.Reply{
			Kind: session.ReplyEnded, Session: h.Session, Epoch: h.Epoch, Reason: session.EndOverloaded,
		})
		return commandRun{}
	}
	a := &attachment{session: h.Session, epoch: h.Epoch, nonce: nonce, peer: p, rights: p.rights}
	k.peers.attachments[h.Session] = a
	p.attachments = append(p.attachments, a)
	return commandRun{peer: p, on: a}
}

// enqueue adds a run to the queue. If the run does not fit, its attachment ends.
func (k *Core) enqueue(p commandRun) {
	if len(p.bytes) == 0 {
		return
	}
	if !k.queue.admit(&p) {
		k.refuse(p)
		return
	}
	if !k.paces.hold(&p, k.now) {
		k.propose(p)
	}
}

// propose adds a run to the queue and counts its Attach.
func (k *Core) propose(p commandRun) {
	k.paces.proposed(&p)
	k.queue.add(p)
}

// release moves the runs that need not wait for the pace of Attach any more to the queue.
func (k *Core) release() {
	k.paces.release(k.now, func(p commandRun) {
		if p.on.over {
			k.queue.remove(&p)
			k.peers.touch(p.peer)
		} else {
			k.propose(p)
		}
	})
}

// refuse drops the Open of a run that is not proposed, or ends the run's attachment.
func (k *Core) refuse(p commandRun) {
	if p.on == nil {
		k.forgetOpen(p.nonce)
	} else if !p.on.over {
		k.peers.end(p.on, session.EndOverloaded)
	}
}

func (k *Core) forgetOpen(nonce lockfsm.Nonce) *peerState {
	p := k.opens[nonce].peer
	if p != nil {
		p.opens--
		delete(k.opens, nonce)
		k.peers.touch(p)
	}
	return p
}

// Proposal returns the batch of commands to propose in this turn and its term, or nil. If the batch
// is not nil, Proposed must be called next. The caller owns the bytes.
func (k *Core) Proposal(wallUnixMS int64) (term uint64, blob []byte) {
	k.release()
	if !k.group.led || k.now.Before(k.queue.retryAt) || len(k.queue.runs) == 0 && !k.due() {
		return 0, nil
	}
	size := k.queue.fill()
	blob = make([]byte, 0, size+64+32*min(len(k.leases.due), expiresPerBlob))
	blob = lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: wallUnixMS}.Append(blob)
	blob = k.duties.append(blob, k.group.born)
	blob = k.leases.append(blob, k.role.Term)
	blob = append(blob, k.searches.refuse...)
	return k.role.Term, k.queue.append(blob)
}

// Proposed reports whether the log accepted the last batch. Otherwise the attachments with commands
// in the batch end, and the keeper's own commands remain due.
func (k *Core) Proposed(accepted bool) {
	for _, p := range k.queue.blob {
		k.queue.remove(&p)
		k.peers.touch(p.peer)
		if accepted && p.pace != nil {
			p.on.asked = true
			k.rounds.await(p.on)
		}
		if !accepted {
			if p.pace != nil {
				k.paces.applied(attachID{p.on.session, p.on.epoch}, 0, k.now)
			}
			k.refuse(p)
		}
	}
	k.queue.proposed()
	if !accepted {
		k.queue.refused(k.now)
		return
	}
	k.searches.accepted()
	k.duties.accepted(k.group.born)
	k.leases.accepted()
}
