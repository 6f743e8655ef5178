package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const frameRenewals = 4096

// Left implements [Keeper.Left].
func (k *Core) Left(now clock.Time, sessions []lockfsm.SessionID) []time.Duration {
	k.begin(now)
	left := make([]time.Duration, len(sessions))
	for i, id := range sessions {
		if s := k.leases.session(id); s != nil {
			left[i] = max(s.deadline.Sub(k.elapsed()), 0)
		}
	}
	return left
}

func (k *Core) takeRenewals(p *peerState, frame []byte) bool {
	for n := 0; len(frame) > 0; n++ {
		r, rest, err := session.NextRenewal(frame)
		if err != nil || n == frameRenewals {
			return false
		}
		frame = rest
		a := k.peers.attached(p, r.Session, r.Epoch)
		if a == nil {
			k.peers.unknown(p, r.Session, r.Epoch)
			continue
		}
		a.waitSeq = r.Seq
		if s := k.leases.session(r.Session); s == nil || s.hears(r.Heard, k.elapsed()) {
			a.waits = true
		}
		k.rounds.await(a)
	}
	return true
}

// Round returns the round to request in this turn, if any.
func (k *Core) Round() (term, round uint64, ok bool) {
	if round, ok = k.rounds.begin(k.now); ok {
		return k.role.Term, round, true
	}
	return 0, 0, false
}

// Confirmed implements [Keeper.Confirmed]. It acknowledges the renewals of that round and of
// earlier rounds, if their sessions exist, have the epoch of the attachment, and are not expiring.
// A renewal whose Attach is not applied is acknowledged together with the Attach.
func (k *Core) Confirmed(now clock.Time, term, round uint64) {
	k.begin(now)
	if term != k.role.Term || !k.group.led || round&SearchRound != 0 {
		return
	}
	k.rounds.confirmed(round, func(a *attachment) {
		if a.proven = a.flySeq; a.live {
			k.acknowledge(a)
		}
	})
}

// acknowledge answers the proven renewal of a live attachment, if there is one.
func (k *Core) acknowledge(a *attachment) {
	seq := a.proven
	a.proven = 0
	s := k.leases.session(a.session)
	if seq == 0 || s == nil || s.epoch != a.epoch || s.expiring {
		return
	}
	s.deadline = k.elapsed().Add(s.ttl)
	s.tells(seq, k.elapsed())
	k.peers.reply(a.peer, &session.Reply{
		Kind: session.ReplyRenewed, Session: a.session, Epoch: a.epoch, Seq: seq,
	})
}
