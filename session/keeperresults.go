package session

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file turns the results of applied commands into replies and into what the keeper itself must know.

// Applied takes results in the order of the log. Those before Leads are not for us: Leads tells what they amount to.
func (k *KeeperCore) Applied(now clock.Time, results []lockfsm.Result) {
	k.begin(now)
	if !k.led {
		return
	}
	for i := range results {
		k.applied(&results[i])
	}
}

func (k *KeeperCore) applied(r *lockfsm.Result) {
	switch r.Kind {
	case lockfsm.Born:
		k.appliedBorn(r)
	case lockfsm.EndGrace:
		if r.Code == lockfsm.Done && !k.graceOver {
			k.graceOver = true
			k.tellGraceOver()
		}
	case lockfsm.Open:
		k.appliedOpen(r)
	case lockfsm.Attach:
		k.appliedAttach(r)
	case lockfsm.Acquire:
		k.appliedAcquire(r)
		k.appliedEvict(r)
	case lockfsm.Release, lockfsm.Cancel, lockfsm.Detach:
		if r.Detached != 0 {
			k.keep(r.Detached, lockfsm.Opener{}, lockfsm.Nonce{}, 0, r.TTL) // nobody can attach it; it expires
		}
		if a := k.present(r); a != nil {
			k.reply(a.peer, &reply{kind: replyFreed, session: r.Session, epoch: r.Epoch, number: r.Number, code: r.Code, budget: r.Budget})
		}
	case lockfsm.Evict:
		k.appliedEvict(r)
	case lockfsm.Close, lockfsm.Expire:
		if r.Code == lockfsm.Done || r.Kind == lockfsm.Expire && r.Code == lockfsm.NoSession {
			k.gone(r.Session) // what a session left behind can be taken from it before it expires once more
		}
		if r.Code == lockfsm.Done && r.TTL > 0 {
			k.keep(r.Session, lockfsm.Opener{}, lockfsm.Nonce{}, 0, r.TTL) // nobody can attach it; it expires once more
		}
	}
	for i := range r.Fired {
		k.fired(&r.Fired[i])
	}
}

// present returns the attachment on which a command came, if it is still the session's.
func (k *KeeperCore) present(r *lockfsm.Result) *attachment {
	if a := k.attachments[r.Session]; a != nil && a.live && a.epoch == r.Epoch {
		return a
	}
	return nil
}

func (k *KeeperCore) appliedBorn(r *lockfsm.Result) {
	if r.Code != lockfsm.Done || k.born {
		return
	}
	k.born, k.bornAt = true, k.now
	k.graceOver = k.grace == 0
	k.tellAskers()
}

func (k *KeeperCore) appliedOpen(r *lockfsm.Result) {
	if r.Code == lockfsm.Done && k.sessions[r.Session] == nil {
		k.keep(r.Session, k.opens[r.Nonce].opener, r.Nonce, 0, r.TTL)
	}
	if p := k.forgetOpen(r.Nonce); p != nil {
		k.reply(p, &reply{kind: replyOpened, nonce: r.Nonce, code: r.Code, session: r.Session, ttl: r.TTL, term: k.role.Term})
	}
}

// tellGraceOver tells everybody who is attached that locks are granted from now on.
func (k *KeeperCore) tellGraceOver() {
	for _, p := range k.roll {
		for _, a := range p.attachments {
			if a.live {
				k.reply(p, &reply{kind: replyGrace, session: a.session, epoch: a.epoch})
			}
		}
	}
}

// appliedAttach makes an attachment live. The states come first: Attached says that they are complete.
func (k *KeeperCore) appliedAttach(r *lockfsm.Result) {
	if s := k.sessions[r.Session]; s != nil && r.Code == lockfsm.Done {
		s.epoch = r.Epoch
	}
	a := k.attachments[r.Session]
	if a == nil || a.epoch != r.Epoch || a.nonce != r.Nonce || a.live {
		return
	}
	if r.Code == lockfsm.Done {
		a.live = true
		if s := k.sessions[r.Session]; s != nil && a.waitSeq != 0 {
			k.tells(s, a.waitSeq)
		}
		for i := range r.States {
			k.tell(a, &r.States[i])
		}
		k.await(a)
		if !k.graceOver {
			left := max(k.bornAt.Add(k.grace).Sub(k.now), time.Millisecond) // not 0, which would mean that it is over
			k.reply(a.peer, &reply{kind: replyGrace, session: a.session, epoch: a.epoch, ttl: left})
		}
	} else {
		k.detach(a)
	}
	k.reply(a.peer, &reply{kind: replyAttached, session: r.Session, epoch: r.Epoch, code: r.Code, term: k.role.Term})
}

func (k *KeeperCore) appliedAcquire(r *lockfsm.Result) {
	a := k.present(r)
	if a == nil {
		return
	}
	if r.Code == lockfsm.Deadlock {
		k.reply(a.peer, &reply{kind: replyDeadlock, session: r.Session, epoch: r.Epoch, number: r.Number, circle: shownTo(a.peer.rights, r.Circle)})
		return
	}
	if r.Code != lockfsm.Held || r.Holder == nil {
		k.reply(a.peer, &reply{
			kind: replyState, session: r.Session, epoch: r.Epoch, number: r.Number, code: r.Code, token: r.Token, watch: r.Watch, budget: r.Budget,
		})
	}
	if r.Holder == nil {
		return
	}
	kind := replyBehind
	if r.Code == lockfsm.Held {
		kind = replyHeld
	}
	k.reply(a.peer, &reply{
		kind: kind, session: r.Session, epoch: r.Epoch, number: r.Number, holder: r.Holder.Session, record: r.Holder.Record,
		token: r.Holder.Token, since: r.Holder.SinceUnixMS, waiters: int64(r.Holder.Waiters), value: r.Holder.Value,
		key: []byte(r.Holder.Key),
	})
}

// appliedEvict tells the client whose request was ended by others, or taken up. One that is not attached here learns with its next Attach that it is over.
func (k *KeeperCore) appliedEvict(r *lockfsm.Result) {
	if r.Evicted == nil {
		return
	}
	if a := k.attachments[r.Evicted.Session]; a != nil && a.live {
		word := &reply{kind: replyEvicted, session: a.session, epoch: a.epoch, number: r.Evicted.Number, record: r.Evicted.By, value: r.Evicted.Reason}
		if r.Kind == lockfsm.Acquire {
			word.kind, word.record = replyTaken, r.Evicted.Taker
		}
		k.reply(a.peer, word)
	}
}

// fired tells a session's client what has become of one of its requests. A session that is not attached here learns it from its next
// Attach.
func (k *KeeperCore) fired(c *lockfsm.Change) {
	if a := k.attachments[c.Session]; a != nil && a.live {
		k.tell(a, c)
	}
}

func (k *KeeperCore) tell(a *attachment, c *lockfsm.Change) {
	code := lockfsm.Waiting
	if c.Token != 0 {
		code = lockfsm.Granted
	}
	k.reply(a.peer, &reply{
		kind: replyState, session: a.session, epoch: a.epoch, number: c.Number, code: code, token: c.Token, watch: c.Watch,
	})
	if c.Wanted {
		k.reply(a.peer, &reply{kind: replyWanted, session: a.session, epoch: a.epoch, number: c.Number})
	}
}

// gone forgets a session that the state does not have any more.
func (k *KeeperCore) gone(id lockfsm.SessionID) {
	if s := k.sessions[id]; s != nil {
		if s.expiring {
			k.expiring--
		}
		if by := Peer(s.opener.Instance); k.opened[by] > 1 {
			k.opened[by]--
		} else {
			delete(k.opened, by)
		}
		delete(k.sessions, id)
	}
	if a := k.attachments[id]; a != nil {
		k.end(a, endNoSession)
	}
}
