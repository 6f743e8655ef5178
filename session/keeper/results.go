package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file turns the results of applied commands into replies and updates the keeper's own state.

// Applied handles results in the order of the log. It ignores results before Leads, because their
// effect is in the state that Leads receives.
func (k *Core) Applied(now clock.Time, results []lockfsm.Result) {
	k.begin(now)
	if !k.group.led {
		return
	}
	for i := range results {
		k.applied(&results[i])
	}
}

func (k *Core) applied(r *lockfsm.Result) {
	switch r.Kind {
	case lockfsm.Born:
		if k.group.appliedBorn(k.now, r.Code) {
			k.tellAskers()
		}
	case lockfsm.EndGrace:
		if k.group.appliedEndGrace(r.Code) {
			k.tellGraceOver()
		}
	case lockfsm.Raise:
		if r.Code == lockfsm.Done {
			k.group.raised(k.duties.raising)
		}
	case lockfsm.Open:
		k.appliedOpen(r)
	case lockfsm.Attach:
		k.appliedAttach(r)
	case lockfsm.Acquire:
		k.searches.note(r.Unsearched)
		k.appliedAcquire(r)
		k.appliedEvict(r)
	case lockfsm.Refuse:
		k.appliedRefuse(r)
	case lockfsm.Release, lockfsm.Cancel, lockfsm.Detach, lockfsm.Downgrade:
		if r.Detached != 0 {
			k.leases.keepGone(r.Detached, r.TTL, k.elapsed())
		}
		k.freed(r)
	case lockfsm.Evict:
		k.appliedEvict(r)
	case lockfsm.Close, lockfsm.Expire:
		if r.Code == lockfsm.Done || r.Kind == lockfsm.Expire && r.Code == lockfsm.NoSession {
			k.forget(r.Session) // the remaining holds of the session can be resumed until they expire
		}
		if r.Code == lockfsm.Done && r.TTL > 0 {
			k.leases.keepGone(r.Session, r.TTL, k.elapsed())
		}
	default:
		if laterKind(r.Kind) {
			k.freed(r)
		}
	}
	for i := range r.Fired {
		k.fired(&r.Fired[i])
	}
}

func (k *Core) freed(r *lockfsm.Result) {
	if a := k.peers.present(r); a != nil {
		k.peers.reply(a.peer, &session.Reply{
			Kind: session.ReplyFreed, Session: r.Session, Epoch: r.Epoch, Number: r.Number, Code: r.Code,
			Budget: r.Budget,
		})
	}
}

func (k *Core) appliedOpen(r *lockfsm.Result) {
	if r.Code == lockfsm.Done && k.leases.session(r.Session) == nil {
		by := k.opens[r.Nonce]
		k.leases.keep(&lockfsm.SessionInfo{ID: r.Session, Opener: by.opener, Life: by.life, Nonce: r.Nonce, TTL: r.TTL},
			k.elapsed())
	}
	if p := k.forgetOpen(r.Nonce); p != nil {
		k.peers.reply(p, &session.Reply{
			Kind: session.ReplyOpened, Nonce: r.Nonce, Code: r.Code, Session: r.Session, TTL: r.TTL,
			Term: k.role.Term,
		})
	}
}

func (k *Core) tellGraceOver() {
	for _, p := range k.peers.all {
		for _, a := range p.attachments {
			if a.live {
				k.peers.reply(p, &session.Reply{Kind: session.ReplyGrace, Session: a.session, Epoch: a.epoch})
			}
		}
	}
}

// appliedAttach makes an attachment live. It sends the states before Attached, because Attached
// means that all states were sent.
func (k *Core) appliedAttach(r *lockfsm.Result) {
	k.paces.applied(attachID{r.Session, r.Epoch}, len(r.States)+len(r.Forced), k.now)
	if s := k.leases.session(r.Session); s != nil && r.Code == lockfsm.Done {
		s.epoch = r.Epoch
	}
	a := k.peers.attachments[r.Session]
	if a == nil || a.epoch != r.Epoch || a.nonce != r.Nonce || a.live {
		return
	}
	if r.Code == lockfsm.Done {
		a.live = true
		if s := k.leases.session(r.Session); s != nil && a.waitSeq != 0 {
			s.tells(a.waitSeq, k.elapsed())
		}
		for i := range r.States {
			k.tell(a, &r.States[i])
		}
		for i := range r.Forced {
			k.tellForced(a, &r.Forced[i])
		}
		k.leases.claims(a.session, a.claim)
		a.claim = claim{}
		if !k.group.graceOver {
			left := max(k.group.graceEnds().Sub(k.now), time.Millisecond) // zero would mean that the grace is over
			k.peers.reply(a.peer, &session.Reply{Kind: session.ReplyGrace, Session: a.session, Epoch: a.epoch, TTL: left})
		}
	} else {
		k.peers.detach(a)
	}
	k.peers.reply(a.peer, &session.Reply{
		Kind: session.ReplyAttached, Session: r.Session, Epoch: r.Epoch, Code: r.Code, Term: k.role.Term,
	})
	if a.live {
		k.acknowledge(a)
	}
}

func (k *Core) appliedAcquire(r *lockfsm.Result) {
	a := k.peers.present(r)
	if a == nil {
		return
	}
	if r.Code == lockfsm.Deadlock {
		k.appliedRefuse(r)
		return
	}
	if r.Code == lockfsm.NotAllowed || r.Code == lockfsm.NotForced {
		k.forbid(a, r)
		return
	}
	full := r.Code == lockfsm.QueueFull
	if full && r.Holder != nil { // first, because QueueFull ends the request
		k.tellHolder(a, session.ReplyBehind, r.Number, r.Holder)
	}
	if r.Code != lockfsm.Held || r.Holder == nil {
		k.peers.reply(a.peer, &session.Reply{
			Kind: session.ReplyState, Session: r.Session, Epoch: r.Epoch, Number: r.Number, Code: r.Code,
			Token: r.Token, Watch: r.Watch, Budget: r.Budget, Last: r.Last, Grant: r.Grant,
		})
	}
	if r.Holder == nil || full {
		return
	}
	kind := session.ReplyBehind
	if r.Code == lockfsm.Held {
		kind = session.ReplyHeld
	}
	k.tellHolder(a, kind, r.Number, r.Holder)
}

// appliedRefuse reports a deadlock, which the Acquire or a later search has found.
func (k *Core) appliedRefuse(r *lockfsm.Result) {
	if a := k.peers.present(r); a != nil && r.Code == lockfsm.Deadlock {
		k.peers.reply(a.peer, &session.Reply{
			Kind: session.ReplyDeadlock, Session: r.Session, Epoch: r.Epoch, Number: r.Number,
			Circle: shownTo(a.rights, r.Circle),
		})
	}
}

func (k *Core) tellHolder(a *attachment, kind session.ReplyKind, n lockfsm.Number, h *lockfsm.Holder) {
	k.peers.reply(a.peer, &session.Reply{
		Kind: kind, Session: a.session, Epoch: a.epoch, Number: n, Holder: h.Session, Record: h.Record,
		Token: h.Token, Since: h.SinceUnixMS, Waiters: int64(h.Waiters), Value: h.Value, Key: []byte(h.Key),
		Kept: h.Kept,
	})
}

func (k *Core) appliedEvict(r *lockfsm.Result) {
	if r.Evicted == nil {
		return
	}
	if a := k.peers.live(r.Evicted.Session); a != nil {
		word := &session.Reply{
			Kind: session.ReplyEvicted, Session: a.session, Epoch: a.epoch, Number: r.Evicted.Number,
			Record: r.Evicted.By, Value: r.Evicted.Reason, Token: r.Evicted.Token,
		}
		if r.Kind == lockfsm.Acquire {
			word.Kind, word.Record = session.ReplyTaken, r.Evicted.Taker
		}
		k.peers.reply(a.peer, word)
	}
}

// tellForced reports a hold that was taken from the session while it was not attached.
func (k *Core) tellForced(a *attachment, e *lockfsm.Event) {
	word := &session.Reply{Kind: session.ReplyEvicted, Session: a.session, Epoch: a.epoch, Token: e.Token,
		Record: e.How.By, Value: e.How.Reason}
	if e.Cause == lockfsm.Resumed {
		word.Kind = session.ReplyTaken
	}
	k.peers.reply(a.peer, word)
}

// Yield implements [Keeper.Yield].
func (k *Core) Yield(now clock.Time, id lockfsm.SessionID, n lockfsm.Number) {
	k.begin(now)
	if a := k.peers.live(id); a != nil {
		k.peers.reply(a.peer, &session.Reply{Kind: session.ReplyYield, Session: id, Epoch: a.epoch, Number: n})
	}
}

func (k *Core) fired(c *lockfsm.Change) {
	if a := k.peers.live(c.Session); a != nil {
		k.tell(a, c)
	}
}

func (k *Core) tell(a *attachment, c *lockfsm.Change) {
	if c.Held != nil {
		k.tellHolder(a, session.ReplyHeld, c.Number, c.Held)
		return
	}
	code := lockfsm.Waiting
	if c.Token != 0 {
		code = lockfsm.Granted
	}
	k.peers.reply(a.peer, &session.Reply{
		Kind: session.ReplyState, Session: a.session, Epoch: a.epoch, Number: c.Number, Code: code,
		Token: c.Token, Watch: c.Watch, Last: c.Last, Grant: c.Grant,
	})
	if c.Wanted {
		k.peers.reply(a.peer, &session.Reply{Kind: session.ReplyWanted, Session: a.session, Epoch: a.epoch, Number: c.Number})
	}
	if c.Asked != 0 {
		k.peers.reply(a.peer, &session.Reply{
			Kind: session.ReplyAsked, Session: a.session, Epoch: a.epoch, Number: c.Number, Place: c.Asked,
		})
	}
}

func (k *Core) forget(id lockfsm.SessionID) {
	k.leases.forget(id)
	if a := k.peers.attachments[id]; a != nil {
		k.peers.end(a, session.EndNoSession)
	}
}
