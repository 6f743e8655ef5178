package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file implements leases: renewals, the rounds that confirm them, and expiry.

// keptSession is a session of the applied state with its deadline.
type keptSession struct {
	id       lockfsm.SessionID
	nonce    lockfsm.Nonce
	opener   lockfsm.Opener // the instance that may use the session
	epoch    lockfsm.Epoch
	ttl      time.Duration
	deadline clock.Time // on the clock of deadlines; see elapsed
	// expiring means that the expiry is decided. Renewals are then not acknowledged.
	expiring bool
	// heard is the sending time of the newest answer that the client has confirmed. told contains
	// the unconfirmed answers. Both remain across attachments, because a client that receives
	// nothing attaches repeatedly.
	heard clock.Time
	told  session.Sent
}

func (k *Core) tells(s *keptSession, seq uint64) { s.told.Note(seq, k.elapsed()) }

// hears is called when a renewal confirms the answer with the number seq. It reports whether the
// newest confirmed answer was sent less than a TTL ago.
func (k *Core) hears(s *keptSession, seq uint64) bool {
	if sent, ok := s.told.Acknowledged(seq); ok {
		s.heard = max(s.heard, sent)
	}
	// The mutant ack-while-expiring disables this check, because the check would hide the mutant's
	// fault.
	return k.elapsed().Sub(s.heard) < s.ttl
}

// Left implements [Keeper.Left].
func (k *Core) Left(now clock.Time, sessions []lockfsm.SessionID) []time.Duration {
	k.begin(now)
	left := make([]time.Duration, len(sessions))
	for i, id := range sessions {
		if s := k.session(id); s != nil {
			left[i] = max(s.deadline.Sub(k.elapsed()), 0)
		}
	}
	return left
}

// elapsed returns the time on the clock of deadlines: the boot-time clock minus all stalls.
func (k *Core) elapsed() clock.Time { return k.now.Add(-k.stalled) }

// keep adds a session, whose full TTL counts from the given time on the clock of deadlines.
func (k *Core) keep(info *lockfsm.SessionInfo, from clock.Time) {
	if info.Opener != (lockfsm.Opener{}) {
		k.opened[info.Opener.Instance]++
	}
	s := &keptSession{
		id: info.ID, opener: info.Opener, nonce: info.Nonce, epoch: info.Epoch,
		ttl: info.TTL, deadline: from.Add(info.TTL), heard: from,
	}
	k.sessions[s.id] = s
	k.expiries.push(expiry{at: s.deadline, session: s.id})
}

// keepGone adds an ended session whose remaining holds expire after ttl. No client can attach to
// it.
func (k *Core) keepGone(id lockfsm.SessionID, ttl time.Duration) {
	k.keep(&lockfsm.SessionInfo{ID: id, TTL: ttl}, k.elapsed())
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

// attached returns the attachment of the peer with this epoch, or nil. A peer with two secrets has
// two connections. It uses a session only on one with the secret under which it has opened the
// session.
func (k *Core) attached(p *peerState, id lockfsm.SessionID, epoch lockfsm.Epoch) *attachment {
	a := k.attachments[id]
	if a == nil || a.peer != p || a.epoch != epoch || a.rights != p.rights && a.rights.Hash() != p.rights.Hash() {
		return nil
	}
	return a
}

func (k *Core) takeRenewals(p *peerState, frame []byte) bool {
	for n := 0; len(frame) > 0; n++ {
		r, rest, err := session.NextRenewal(frame)
		if err != nil || n == frameRenewals {
			return false
		}
		frame = rest
		a := k.attached(p, r.Session, r.Epoch)
		if a == nil {
			k.unknown(p, r.Session, r.Epoch)
			continue
		}
		a.waitSeq = r.Seq
		if s := k.session(r.Session); s == nil || k.hears(s, r.Heard) {
			a.waits = true
		}
		k.await(a)
	}
	return true
}

// await adds an attachment with a renewal to the attachments that wait for the next round. A
// renewal that was sent with an Attach waits until the Attach is applied.
func (k *Core) await(a *attachment) {
	if a.waits && a.live && !a.inWaiters {
		a.inWaiters = true
		k.waiters = append(k.waiters, a)
	}
}

// Round returns the round to request in this turn, if any. One round serves all waiting renewals,
// and further renewals wait for the next round. If the confirmation is late, Round requests a new
// round.
func (k *Core) Round() (term, round uint64, ok bool) {
	late := len(k.flying) > 0 && k.now.Sub(k.roundAt) >= roundAgain
	if len(k.flying) > 0 && !late || len(k.flying)+len(k.waiters) == 0 {
		return 0, 0, false
	}
	k.round++
	k.roundAt = k.now
	kept := k.waiters[:0]
	for _, a := range k.waiters {
		switch {
		case a.over || !a.waits:
			a.inWaiters = false
		case a.flies: // otherwise a slow quorum would never confirm a renewal
			kept = append(kept, a)
		default:
			a.inWaiters, a.waits = false, false
			a.flies, a.flySeq, a.round = true, a.waitSeq, k.round
			k.flying = append(k.flying, a)
		}
	}
	clear(k.waiters[len(kept):])
	k.waiters = kept
	if len(k.flying) == 0 {
		return 0, 0, false
	}
	return k.role.Term, k.round, true
}

// Confirmed implements [Keeper.Confirmed]. It acknowledges the renewals of that round and of
// earlier rounds, if their sessions exist, have the epoch of the attachment, and are not expiring.
func (k *Core) Confirmed(now clock.Time, term, round uint64) {
	k.begin(now)
	if term != k.role.Term || !k.led || round&SearchRound != 0 {
		return
	}
	kept := k.flying[:0]
	for _, a := range k.flying {
		if a.over || !a.flies {
			continue
		}
		if a.round > round {
			kept = append(kept, a)
			continue
		}
		a.flies = false
		s := k.session(a.session)
		if s == nil || s.epoch != a.epoch || s.expiring {
			continue
		}
		s.deadline = k.elapsed().Add(s.ttl)
		k.tells(s, a.flySeq)
		k.reply(a.peer, &session.Reply{Kind: session.ReplyRenewed, Session: a.session, Epoch: a.epoch, Seq: a.flySeq})
	}
	clear(k.flying[len(kept):])
	k.flying = kept
}

// expire decides which sessions expire. A session does not expire while one of its renewals waits
// for confirmation. The method step limits the number of deadlines that a turn checks. If some are
// left, the next turn follows immediately.
func (k *Core) expire() {
	now := k.elapsed()
	k.expiriesLeft = false
	for budget := k.step(); len(k.expiries) > 0 && !now.Add(watchBefore).Before(k.expiries[0].at); budget-- {
		if budget == 0 {
			k.expiriesLeft = true
			return
		}
		due := k.expiries[0]
		s := k.sessions[due.session]
		switch {
		case s == nil || s.expiring:
			k.expiries.pop()
			continue
		case due.at.Before(s.deadline):
			k.expiries.pop()
			k.expiries.push(expiry{at: s.deadline, session: s.id})
			continue
		case now.Before(due.at):
			return
		}
		k.expiries.pop()
		if a := k.attachments[s.id]; a != nil && (a.waits || a.flies) {
			k.expiries.push(expiry{at: now.Add(tickEvery), session: s.id})
			continue
		}
		s.expiring = true
		k.expiring++
		k.expireDue = append(k.expireDue, s.id)
	}
}

type expiry struct {
	at      clock.Time
	session lockfsm.SessionID
}

// expiryHeap is a min-heap of expiries by time, and at equal times by session ID. A renewal does
// not change the heap. A renewed session is pushed again when its expiry is reached.
type expiryHeap []expiry

func (h expiryHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].session < h[j].session
}

func (h *expiryHeap) push(e expiry) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *expiryHeap) pop() expiry {
	s := *h
	first := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s.less(child+1, child) {
			child++
		}
		if !s.less(child, i) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
